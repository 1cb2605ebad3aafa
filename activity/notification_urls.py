from django.urls import path

from activity import notifications, push_moves

app_name = "notifications"
urlpatterns = [
    path("", notifications.notification_list, name="list"),
    path("read/", notifications.read_all, name="read_all"),
    path("<int:pk>/read/", notifications.read, name="read"),
    path("browser/", notifications.subscribe, name="subscribe"),
    path("browser/forget/", notifications.unsubscribe, name="unsubscribe"),
    path("move/<str:token>/", push_moves.move, name="move"),
]
