from django.urls import path

from accounts import pages

app_name = "recipients"
urlpatterns = [path("", pages.recipient_list, name="list")]
