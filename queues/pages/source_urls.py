from django.urls import path

from queues.pages import sources

app_name = "sources"
urlpatterns = [
    path("", sources.source_list, name="list"),
    path("add/", sources.add, name="add"),
    path("<int:pk>/", sources.source_page, name="page"),
    path("<int:pk>/columns/", sources.columns, name="columns"),
    path("<int:pk>/access/", sources.access, name="access"),
    path("<int:pk>/delete/", sources.delete, name="delete"),
    path("<int:pk>/<slug:verb>/", sources.act, name="act"),
]
