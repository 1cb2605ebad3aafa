from django.urls import path

from activity.pages import approvals

app_name = "approvals"
urlpatterns = [
    path("", approvals.approval_list, name="list"),
    path("<int:pk>/", approvals.approval, name="page"),
    path("<int:pk>/approve/", approvals.approve, name="approve"),
    path("<int:pk>/refuse/", approvals.refuse, name="refuse"),
    path("<int:pk>/withdraw/", approvals.withdraw, name="withdraw"),
]
