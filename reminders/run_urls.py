from django.urls import path

from reminders import run_actions, run_pages

app_name = "runs"
urlpatterns = [
    path("<int:pk>/", run_pages.run, name="page"),
    path("<int:pk>/progress", run_pages.progress, name="progress"),
    path("<int:pk>/results.csv", run_pages.run_results, name="results"),
    path("<int:pk>/pause", run_actions.pause, name="pause"),
    path("<int:pk>/resume", run_actions.resume, name="resume"),
    path("<int:pk>/cancel", run_actions.cancel, name="cancel"),
    path("<int:pk>/retry", run_actions.retry_failed, name="retry"),
    path("<int:pk>/archive", run_actions.archive, name="archive"),
    path("<int:pk>/targets/<int:target>/confirm", run_actions.confirm, name="confirm"),
    path("<int:pk>/targets/<int:target>/resend", run_actions.resend, name="resend"),
]
