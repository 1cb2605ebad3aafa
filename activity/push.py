"""Web push: news reaches a browser that has no page of ours open. docs/notifications.md says how it is set up."""

import json
from collections.abc import Mapping

from django.conf import settings
from pywebpush import WebPushException, webpush

from activity import push_moves
from activity.models import Notification, PushSubscription

TIMEOUT_SECONDS = 10
KEPT_SECONDS = 24 * 3600  # by the push service, for a browser that is switched off
GONE = frozenset({404, 410})  # the browser has unsubscribed


class NotNowError(Exception):
    """The push service could not take it; it may a little later."""


def send(subscription_id: int, notification_id: int) -> None:
    """Push one notification to one browser; one that is gone is forgotten."""
    browser = PushSubscription.objects.filter(pk=subscription_id).first()
    made = Notification.objects.filter(pk=notification_id).select_related("run").first()
    if browser is None or made is None:
        return
    try:
        webpush(
            {"endpoint": browser.endpoint, "keys": {"p256dh": browser.p256dh, "auth": browser.auth}},
            json.dumps(content(made)),
            vapid_private_key=settings.VAPID_PRIVATE_KEY,
            vapid_claims={"sub": settings.VAPID_SUBJECT},
            ttl=KEPT_SECONDS,
            timeout=TIMEOUT_SECONDS,
        )
    except WebPushException as error:
        status = error.response.status_code if error.response is not None else None
        if status not in GONE:
            raise NotNowError(f"The push service answered {status}.") from error
        browser.delete()


def content(made: Notification) -> Mapping[str, object]:
    """What the service worker shows (static/js/sw.js)."""
    return {
        "title": made.title,
        "body": made.body,
        "url": made.url,
        "tag": made.key,
        "moves": push_moves.offered(made),
    }
