from django.urls import path

from accounts import pages

app_name = "accounts"
urlpatterns = [path("", pages.account_list, name="list")]
