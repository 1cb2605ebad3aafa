from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path

from accounts.access import staff_login
from accounts.login import Login
from accounts.unsubscribe import unsubscribe
from activity.health.readiness import healthz, readyz
from activity.live.polling import live_state
from activity.metrics.page import metrics
from activity.pages.app_manifest import manifest
from activity.pages.dashboard import dashboard
from activity.pages.notifications import service_worker
from activity.pages.style_and_errors import styleguide
from api.site import api
from delivery.inbound.webhooks import hook
from delivery.pages.sending import sending

urlpatterns: list[URLPattern | URLResolver] = [
    path("", dashboard, name="dashboard"),
    path("reminders/", include("reminders.pages.urls")),
    path("calendar/", include("reminders.pages.calendar_urls")),
    path("runs/", include("activity.pages.runs.urls")),
    path("queues/", include("queues.pages.urls")),
    path("follow-ups/", include("reminders.pages.follow_up_urls")),
    path("recipients/", include("activity.pages.privacy_urls")),
    path("recipients/", include("accounts.pages.urls")),
    path("accounts/", include("delivery.pages.urls")),
    path("sending/", sending, name="sending"),
    path("activity/", include("activity.pages.urls")),
    path("approvals/", include("activity.pages.approval_urls")),
    path("audit/", include("activity.pages.audit_urls")),
    path("notifications/settings/", include("notices.pages.urls")),
    path("notifications/", include("activity.pages.notification_urls")),
    path("api/v1/", api.urls),
    path("keys/", include("api.pages.urls")),
    path("webhooks/", include("api.pages.webhook_urls")),
    path("", include("people.pages.urls")),
    path("", include("people.pages.login_urls")),
    path("sources/", include("queues.pages.source_urls")),
    path("live/", live_state, name="live"),
    path("app.webmanifest", manifest, name="manifest"),
    path("sw.js", service_worker, name="service_worker"),
    path("login/", Login.as_view(), name="login"),
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

handler400 = "activity.pages.style_and_errors.bad_request"
