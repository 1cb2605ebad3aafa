from django.urls import path

from activity.pages import audit

app_name = "audit"
urlpatterns = [
    path("", audit.audit_list, name="list"),
    path("audit.csv", audit.audit_csv, name="csv"),
]
