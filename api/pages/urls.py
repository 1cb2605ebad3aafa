from django.urls import path

from api.pages import keys, trial

app_name = "api_keys"
urlpatterns = [
    path("", keys.key_list, name="list"),
    path("try/", trial.try_out, name="try"),
    path("<int:pk>/revoke/", keys.revoke, name="revoke"),
]
