from django.urls import path

from activity.pages.runs import actions, decisions, hand_over, hours, page
from delivery.run_actions import ACTIONS, BATCHES, TARGET_ACTIONS

app_name = "runs"
urlpatterns = [
    path("<int:pk>/", page.run, name="page"),
    path("<int:pk>/progress", page.progress, name="progress"),
    path("<int:pk>/hand-over", hand_over.hand_over, name="hand_over"),
    path("<int:pk>/hours", hours.hours, name="hours"),
    path("<int:pk>/results.csv", page.run_results, name="results"),
    *(path(f"<int:pk>/{verb}", actions.act, {"verb": verb}, name=verb) for verb in ACTIONS),
    *(
        path(f"<int:pk>/targets/{verb}", decisions.decide_about_many, {"verb": verb}, name=verb)
        for verb in BATCHES
    ),
    *(
        path(f"<int:pk>/targets/<int:target>/{verb}", actions.act_on_target, {"verb": verb}, name=verb)
        for verb in TARGET_ACTIONS
    ),
]
