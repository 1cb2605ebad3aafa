from django.urls import path

from activity import pages

app_name = "activity"
urlpatterns = [path("", pages.activity, name="list")]
