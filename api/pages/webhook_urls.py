from django.urls import path

from api.pages import webhooks

app_name = "webhooks"
urlpatterns = [
    path("", webhooks.webhook_list, name="list"),
    path("<int:pk>/", webhooks.webhook_page, name="page"),
    path("<int:pk>/replay/<int:delivery>/", webhooks.replay, name="replay"),
    path("<int:pk>/delete/", webhooks.delete, name="delete"),
    path("<int:pk>/<slug:verb>/", webhooks.act, name="act"),
]
