from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path

from activity.health import healthz, readyz
from activity.pages import dashboard, styleguide

urlpatterns: list[URLPattern | URLResolver] = [
    path("", dashboard, name="dashboard"),
    path("reminders/", include("reminders.urls")),
    path("recipients/", include("accounts.recipient_urls")),
    path("accounts/", include("accounts.urls")),
    path("activity/", include("activity.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("styleguide/", styleguide, name="styleguide"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]

handler400 = "activity.pages.bad_request"
