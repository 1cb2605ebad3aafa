"""The page of a person's own notifications, and the browsers that receive them by web push."""

from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.access import local_address, user_of
from accounts.models import Role
from accounts.paging import page_of
from accounts.roles import touchable
from activity.live import messages
from activity.models import Notification, PushSubscription
from activity.pages import push_actions
from activity.person_events import send_event
from activity.push_services import UnknownPushServiceError, push_address
from audit.record import record
from config.web.json_bodies import read_json
from delivery.models import Run

SERVICE_WORKER = settings.BASE_DIR / "static" / "js" / "sw.js"
MOST_BROWSERS = 20  # of one person; a further one replaces the oldest


@login_required
def notification_list(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    rows = Notification.objects.filter(owner=user).select_related("run").defer("run__parts")
    page = page_of(rows, request.GET, newest_first=True)
    runs = Run.objects.resumable().filter(pk__in={row.run_id for row in page.rows})
    resumable = set(touchable(runs, user, Role.SEND).values_list("pk", flat=True))
    context = {
        "page": page,
        "resumable": resumable,
        "unread": messages.unread(user),
        "asks": push_actions.ASKS,
        "push_key": settings.VAPID_PUBLIC_KEY,
    }
    return render(request, "activity/notifications.html", context)


@login_required
@require_POST
def read(request: HttpRequest, pk: int) -> HttpResponse:
    """Mark a notification as read, and redirect to the page that it is about."""
    news = get_object_or_404(Notification, pk=pk, owner=user_of(request))
    _mark_read(request, pk=news.pk)
    return redirect(local_address(news.url) or "notifications:list")


@login_required
@require_POST
def read_all(request: HttpRequest) -> HttpResponse:
    _mark_read(request)
    return redirect("notifications:list")


def _mark_read(request: HttpRequest, **which: int) -> None:
    user = user_of(request)
    unread = Notification.objects.filter(owner=user, read_at=None, **which)
    if unread.update(read_at=timezone.now()):
        send_event(user.pk, "notifications.read")


@login_required
@require_POST
def subscribe(request: HttpRequest) -> HttpResponse:
    """Store the browser that asks for web push, from the JSON of its PushSubscription."""
    user = user_of(request)
    try:
        asked = read_json(request.body)
        endpoint, keys = str(asked["endpoint"]), asked["keys"]
        p256dh, auth = str(keys["p256dh"]), str(keys["auth"])
    except (ValueError, KeyError, TypeError):
        return HttpResponseBadRequest("This is not a subscription of a browser.")
    try:
        known = str(push_address(endpoint))
    except UnknownPushServiceError:
        return HttpResponseBadRequest("Paceline does not know this push service.")
    if len(known) > 1000 or len(p256dh) > 200 or len(auth) > 100:
        return HttpResponseBadRequest("This is not a subscription of a browser.")
    with transaction.atomic():
        PushSubscription.objects.update_or_create(
            endpoint=known, defaults={"user": user, "p256dh": p256dh, "auth": auth}
        )
        record("browser.subscribed", user, by=user)
    surplus = PushSubscription.objects.filter(user=user).order_by("-pk").values("pk")[MOST_BROWSERS:]
    PushSubscription.objects.filter(pk__in=list(surplus.values_list("pk", flat=True))).delete()
    return JsonResponse({}, status=HTTPStatus.CREATED)


@login_required
@require_POST
def unsubscribe(request: HttpRequest) -> HttpResponse:
    try:
        endpoint = str(read_json(request.body)["endpoint"])
    except (ValueError, KeyError, TypeError):
        return HttpResponseBadRequest("This is not a subscription of a browser.")
    with transaction.atomic():
        gone, _ = PushSubscription.objects.filter(user=user_of(request), endpoint=endpoint).delete()
        if gone:
            record("browser.forgotten", user_of(request), by=user_of(request))
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


@never_cache
@require_safe
def service_worker(_request: HttpRequest) -> HttpResponse:
    """Return the service worker. Its address is at the root: it may only serve the addresses below its own."""
    return HttpResponse(SERVICE_WORKER.read_bytes(), content_type="text/javascript")
