from django.urls import path

from activity import lists, run_moves

app_name = "activity"
urlpatterns = [
    path("", lists.run_list, name="list"),
    path("attempts/", lists.attempt_list, name="attempts"),
    path("move/", run_moves.move, name="move"),
]
