"""Reads the reports of e-mail providers: bounces, complaints, refusals and deliveries.

anymail knows the form of each provider's reports, and this module knows what they mean here. A report is believed when
the provider signed it (Mailgun, MailerSend and Resend do), or when it carries the name and the secret that are part of
the address that was entered there: https://paceline:secret@paceline.example/hooks/...
"""

import base64
import hashlib
import hmac
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qsl

from delivery.outcomes import is_dead_status
from delivery.transports.base import (
    ConsentTold,
    InboundEvent,
    Receipt,
    ReceiptState,
    WebhookRefusedError,
    WebhookRequest,
    sendable,
)
from delivery.transports.http.reading import at
from delivery.transports.http.signatures import same

USER: Final = "paceline"
VIEWS: Mapping[str, str] = {
    "brevo": "BrevoTrackingWebhookView",
    "mailersend": "MailerSendTrackingWebhookView",
    "mailgun": "MailgunTrackingWebhookView",
    "mailjet": "MailjetTrackingWebhookView",
    "mandrill": "MandrillCombinedWebhookView",
    "postmark": "PostmarkTrackingWebhookView",
    "resend": "ResendTrackingWebhookView",
    "sparkpost": "SparkPostTrackingWebhookView",
}
# Where a report says whether the address is to blame, and the words for an address at which nothing arrives.
HARD: Mapping[str, tuple[tuple[str, ...], frozenset[object]]] = {
    "brevo": (("event",), frozenset({"hard_bounce", "invalid_email"})),
    "mailersend": (("data", "type"), frozenset({"hard_bounced", "activity.hard_bounced"})),
    "mailgun": (("event-data", "reason"), frozenset({"bounce", "suppress-bounce"})),
    "mailjet": (
        ("error",),
        frozenset({"user unknown", "mailbox inactive", "invalid domain", "no mail host"}),
    ),
    "mandrill": (("event",), frozenset({"hard_bounce"})),
    "postmark": (("Type",), frozenset({"HardBounce", "BadEmailAddress"})),
    "resend": (("data", "bounce", "type"), frozenset({"Permanent"})),
    "sparkpost": (("msys", "message_event", "bounce_class"), frozenset({"10", "30"})),
}
FAILURES = frozenset({"bounced", "rejected", "failed"})
ENHANCED = re.compile(r"\b5\.\d{1,3}\.\d{1,3}\b")
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A report in the form in which anymail reads it: what it uses of Django's requests."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content_type: str

    @property
    def POST(self) -> dict[str, str]:  # noqa: N802 - Django's name
        return dict(parse_qsl(self.body.decode(errors="replace")))


def parse(
    request: WebhookRequest, *, provider: str, signing_key: str, copy_to: str = ""
) -> list[InboundEvent]:
    """Return the events of a report; raise WebhookRefusedError. Reports about the sender's own copies say nothing."""
    _require_proof(request, provider, signing_key)
    try:
        told = _view(provider).parse_events(_posted(request))
        return [
            event
            for each in told
            if not copy_to or (each.recipient or "").lower() != copy_to.lower()
            for event in _events(each, provider, request.received_at)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise WebhookRefusedError("The report cannot be read.") from error
    except Exception as error:
        # anymail's own errors have no common root here: an inbound report sent to this address, for example.
        raise WebhookRefusedError(f"This is no report of deliveries ({type(error).__name__}).") from error


def _view(provider: str) -> Any:
    module = import_module(f"anymail.webhooks.{provider}")
    keys = {"mailgun": {"webhook_signing_key": "-"}, "mailersend": {"signing_secret": "-"}}
    with warnings.catch_warnings():  # who may report is decided here, not by anymail
        warnings.simplefilter("ignore")
        return getattr(module, VIEWS[provider])(**keys.get(provider, {}))


def _posted(request: WebhookRequest) -> Posted:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Posted(body=request.body, headers=request.headers, content_type=content_type)


def _events(event: Any, provider: str, now: datetime) -> Iterator[InboundEvent]:
    when = event.timestamp or now
    if event.event_type in {"unsubscribed", "subscribed"} and event.recipient:
        wanted = event.event_type == "subscribed"
        name = f"consent:{event.recipient}:{wanted}:{when:%Y%m%dT%H%M%S}"
        yield ConsentTold(event_id=name, sender=event.recipient.lower(), wanted=wanted, at=when)
    state = _state(event, provider)
    if state is not None and event.message_id:
        yield Receipt(
            event_id=f"receipt:{event.message_id}:{state}",
            provider_id=str(event.message_id),
            state=state,
            at=when,
            reason=_why(event) if state is not ReceiptState.DELIVERED else "",
        )


def _state(event: Any, provider: str) -> ReceiptState | None:
    """Return what became of the message; None for news that say nothing about it, such as a click."""
    if event.event_type == "delivered":
        return ReceiptState.DELIVERED
    if event.event_type == "complained":
        return ReceiptState.COMPLAINED
    if event.event_type not in FAILURES:
        return None
    return ReceiptState.BOUNCED if _is_dead(event, provider) else ReceiptState.FAILED


def _is_dead(event: Any, provider: str) -> bool:
    """Decide whether nothing arrives at the address: the mail server's own code says more than the provider's word."""
    codes = ENHANCED.findall(str(event.mta_response or ""))
    if codes:
        return any(is_dead_status(code) for code in codes)
    path, words = HARD[provider]
    return at(event.esp_event, *path) in words


def _why(event: Any) -> str:
    said = event.mta_response or event.description or event.reject_reason or event.event_type
    return " ".join(sendable(str(said)).split())[:LONGEST]


def _require_proof(request: WebhookRequest, provider: str, signing_key: str) -> None:
    if _has_secret(request):
        return
    signed = SIGNED.get(provider)
    if signed is None or not signing_key:
        raise WebhookRefusedError("The name and the secret are missing from the address, or wrong.")
    if not signed(request, signing_key):
        raise WebhookRefusedError("The signature is wrong.")


def _has_secret(request: WebhookRequest) -> bool:
    kind, _, told = request.headers.get("authorization", "").partition(" ")
    expected = base64.b64encode(f"{USER}:{request.secret}".encode()).decode()
    return bool(request.secret) and kind.lower() == "basic" and same(told.strip(), expected)


def _mailgun(request: WebhookRequest, key: str) -> bool:
    try:
        signature = json.loads(request.body)["signature"]
        message = f"{signature['timestamp']}{signature['token']}".encode()
        return same(str(signature["signature"]), hmac.new(key.encode(), message, hashlib.sha256).hexdigest())
    except (ValueError, KeyError, TypeError):
        return False


def _mailersend(request: WebhookRequest, key: str) -> bool:
    expected = hmac.new(key.encode(), request.body, hashlib.sha256).hexdigest()
    return same(request.headers.get("signature", ""), expected)


def _resend(request: WebhookRequest, key: str) -> bool:
    """Check the signature of a Standard Webhook, under the names of headers that Resend uses."""
    try:
        secret = base64.b64decode(key.removeprefix("whsec_"))
    except ValueError:
        return False
    name, when = request.headers.get("svix-id", ""), request.headers.get("svix-timestamp", "")
    signed = hmac.new(secret, f"{name}.{when}.".encode() + request.body, hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(signed).decode()}"
    return any(same(told, expected) for told in request.headers.get("svix-signature", "").split())


SIGNED = {"mailgun": _mailgun, "mailersend": _mailersend, "resend": _resend}
