from django.urls import path

from reminders.follow_ups import pages

app_name = "follow_ups"
urlpatterns = [path("", pages.follow_up_list, name="list")]
