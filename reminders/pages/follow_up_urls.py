from django.urls import path

from reminders.pages import follow_ups

app_name = "follow_ups"
urlpatterns = [path("", follow_ups.follow_up_list, name="list")]
