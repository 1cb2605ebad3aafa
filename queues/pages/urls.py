from django.urls import path

from queues.pages import imports, items
from queues.pages import queues as pages

app_name = "queues"
urlpatterns = [
    path("", pages.queue_list, name="list"),
    path("new/", pages.new, name="new"),
    path("<int:pk>/", pages.page, name="page"),
    path("<int:pk>/edit/", pages.edit, name="edit"),
    path("<int:pk>/steer/", pages.steer, name="steer"),
    path("<int:pk>/items/", pages.change_many, name="change_many"),
    path("<int:pk>/items/add/", items.add, name="add"),
    path("<int:pk>/import/", imports.upload, name="upload"),
    path("items/<int:pk>/", items.item, name="item"),
    path("items/<int:pk>/withdraw/", items.item_withdraw, name="item_withdraw"),
    path("imports/<int:pk>/", imports.show, name="import_job"),
    path("imports/<int:pk>/columns/", imports.columns, name="import_columns"),
    path("imports/<int:pk>/confirm/", imports.confirm, name="import_confirm"),
    path("imports/<int:pk>/discard/", imports.discard, name="import_discard"),
    path("imports/<int:pk>/report/", imports.report, name="import_report"),
]
