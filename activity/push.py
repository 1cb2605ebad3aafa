"""Web push: notifications reach a browser that has no page of ours open. docs/notifications.md describes the setup.

pywebpush encrypts and py_vapid signs; the request is our own, so that a push has the timeouts, the network rule and
the refusal of redirects that every other request has.
"""

import asyncio
import json
import time
from collections.abc import Mapping

from django.conf import settings
from http_ece import ECEException
from py_vapid import Vapid
from pywebpush import WebPusher, WebPushException
from yarl import URL

from activity.models import Notification, PushSubscription
from activity.pages import push_actions
from activity.push_services import UnknownPushServiceError, push_address
from delivery.sessions import calls
from delivery.transports.http.exchange import Answer, Request, Unanswered, exchange, open_session
from delivery.transports.networks.addresses import WebAddress
from delivery.transports.networks.allowed import allowed_networks

CONNECT_SECONDS = 5
TIMEOUT_SECONDS = 10
KEPT_SECONDS = 24 * 3600  # kept by the push service, for a browser that is switched off
SIGNED_SECONDS = 12 * 3600
GONE = frozenset({404, 410})  # the browser has unsubscribed
# Errors of an address or of keys that can never be used.
UNUSABLE = (UnknownPushServiceError, WebPushException, ECEException, ValueError)


class NotNowError(Exception):
    """The push service could not accept the push now; it may accept it a little later."""


def send(subscription_id: int, notification_id: int) -> None:
    """Push one notification to one browser. Deletes a subscription that has ended or that no push service has."""
    browser = PushSubscription.objects.filter(pk=subscription_id, user__is_active=True).first()
    made = Notification.objects.filter(pk=notification_id).select_related("run").first()
    if browser is None or made is None:
        return
    try:
        address = push_address(browser.endpoint)
        body = _encrypted(browser, json.dumps(content(made)).encode())
    except UNUSABLE:
        browser.delete()
        return
    calls.release_connection()
    answer = asyncio.run(_exchanged(_request(address, body)))
    if isinstance(answer, Answer) and answer.status in GONE:
        browser.delete()
    elif not isinstance(answer, Answer):
        raise NotNowError(f"The push service did not answer: {answer.reason}.")
    elif not answer.ok:
        raise NotNowError(f"The push service answered {answer.status}.")


def _encrypted(browser: PushSubscription, words: bytes) -> bytes:
    """Encrypt for one browser alone; raises one of UNUSABLE."""
    keys = {"p256dh": browser.p256dh, "auth": browser.auth}
    return bytes(WebPusher({"endpoint": browser.endpoint, "keys": keys}).encode(words)["body"])


def _request(address: WebAddress, body: bytes) -> Request:
    """Return the request to the push service, signed with our key."""
    claims = {
        "sub": settings.VAPID_SUBJECT,
        "aud": address.origin,
        "exp": int(time.time()) + SIGNED_SECONDS,
    }
    signed = Vapid.from_string(private_key=settings.VAPID_PRIVATE_KEY).sign(claims)
    headers = {
        **signed,
        "TTL": str(KEPT_SECONDS),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
    }
    return Request(method="POST", url=URL(str(address), encoded=True), headers=headers, body=body)


async def _exchanged(request: Request) -> Answer | Unanswered:
    async with open_session(networks=allowed_networks(settings.PRIVATE_NETWORKS)) as session:
        return await exchange(session, request, connect=CONNECT_SECONDS, total=TIMEOUT_SECONDS)


def content(made: Notification) -> Mapping[str, object]:
    """Return what the service worker shows (static/js/sw.js)."""
    return {
        "title": made.title,
        "body": made.body,
        "url": made.url,
        "tag": made.key,
        "moves": push_actions.offered(made),
    }
