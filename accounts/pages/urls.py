from django.urls import path

from accounts.pages import imports, tags
from accounts.pages import recipients as pages

app_name = "recipients"
urlpatterns = [
    path("", pages.recipient_list, name="list"),
    path("export/", pages.export, name="export"),
    path("add/", pages.add, name="add"),
    path("<int:pk>/", pages.recipient_page, name="recipient"),
    path("<int:pk>/edit/", pages.edit, name="edit"),
    path("<int:pk>/archive/", pages.archive, name="archive"),
    path("<int:pk>/<slug:action>/", pages.change_consent, name="consent"),
    path("tags/", tags.tag_list, name="tags"),
    path("tags/all/", tags.tag_all, name="tag_all"),
    path("tags/<int:pk>/", tags.tag_page, name="tag"),
    path("import/", imports.upload, name="import"),
    path("import/<int:pk>/", imports.show, name="import_job"),
    path("import/<int:pk>/columns/", imports.columns, name="import_columns"),
    path("import/<int:pk>/confirm/", imports.confirm, name="import_confirm"),
    path("import/<int:pk>/discard/", imports.discard, name="import_discard"),
    path("import/<int:pk>/report/", imports.report, name="import_report"),
]
