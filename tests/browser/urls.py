"""All addresses, and the style page whether or not the settings were read in debug."""

from django.urls import path

from activity.pages import styleguide
from config.urls import urlpatterns as everything

urlpatterns = [*everything, path("styleguide/", styleguide, name="styleguide")]
