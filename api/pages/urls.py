from django.urls import path

from api.pages import keys

app_name = "api_keys"
urlpatterns = [
    path("", keys.key_list, name="list"),
    path("<int:pk>/revoke/", keys.revoke, name="revoke"),
]
