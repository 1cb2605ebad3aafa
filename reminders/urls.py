from django.urls import path

from reminders import pages

app_name = "reminders"
urlpatterns = [path("", pages.reminder_list, name="list")]
