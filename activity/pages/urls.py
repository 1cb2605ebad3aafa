from django.urls import path

from activity.pages.runs import actions, lists

app_name = "activity"
urlpatterns = [
    path("", lists.run_list, name="list"),
    path("attempts/", lists.attempt_list, name="attempts"),
    path("move/", actions.act_on_many, name="move"),
]
