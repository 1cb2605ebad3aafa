from django.urls import path

from activity.pages import notifications, push_actions

app_name = "notifications"
urlpatterns = [
    path("", notifications.notification_list, name="list"),
    path("read/", notifications.read_all, name="read_all"),
    path("<int:pk>/read/", notifications.read, name="read"),
    path("browser/", notifications.subscribe, name="subscribe"),
    path("browser/forget/", notifications.unsubscribe, name="unsubscribe"),
    path("move/<str:token>/", push_actions.act, name="move"),
]
