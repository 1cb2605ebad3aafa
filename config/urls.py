from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path

from accounts.access import staff_login
from accounts.unsubscribe import unsubscribe
from activity.dashboard import dashboard
from activity.health import healthz, readyz
from activity.metrics import metrics
from activity.notifications import service_worker
from activity.pages import styleguide
from activity.polling import live_state
from delivery.inbound.hooks import hook

urlpatterns: list[URLPattern | URLResolver] = [
    path("", dashboard, name="dashboard"),
    path("reminders/", include("reminders.urls")),
    path("runs/", include("reminders.run_urls")),
    path("follow-ups/", include("reminders.follow_ups.urls")),
    path("recipients/", include("accounts.recipient_urls")),
    path("accounts/", include("delivery.pages.urls")),
    path("activity/", include("activity.urls")),
    path("notifications/", include("activity.notification_urls")),
    path("live/", live_state, name="live"),
    path("sw.js", service_worker, name="service_worker"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/login/", staff_login),  # before the admin's own
    path("admin/", admin.site.urls),
    path("styleguide/", styleguide, name="styleguide"),
    # No slash at the end: the POST of a mail program or a service must not be redirected.
    path("unsubscribe/<str:token>", unsubscribe, name="unsubscribe"),
    path("hooks/<uuid:public_id>/<str:key>", hook, name="hook"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "activity.pages.bad_request"
