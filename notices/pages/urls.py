from django.urls import path

from notices.pages import settings

app_name = "notices"
urlpatterns = [
    path("", settings.overview, name="settings"),
    path("hours/", settings.hours, name="hours"),
    path("<int:pk>/", settings.address_page, name="address"),
    path("<int:pk>/confirm/", settings.confirm, name="confirm"),
    path("<int:pk>/delete/", settings.delete, name="delete"),
    path("<int:pk>/<slug:verb>/", settings.act, name="act"),
]
