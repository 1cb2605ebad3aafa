from django.urls import path

from reminders.pages import calendar

app_name = "calendar"
urlpatterns = [
    path("", calendar.calendar, name="calendar"),
    path("lengths", calendar.foresee, name="foresee"),
    path("feed/new", calendar.renew_feed, name="renew"),
    path("<str:token>.ics", calendar.ics, name="feed"),
]
