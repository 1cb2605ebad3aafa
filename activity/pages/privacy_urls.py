from django.urls import path

from activity.pages import privacy

app_name = "privacy"
urlpatterns = [
    path("<int:pk>/data.json", privacy.download, name="download"),
    path("<int:pk>/erase", privacy.erasure, name="erase"),
]
