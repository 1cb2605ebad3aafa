"""What Meta reports: messages and statuses, several in one report, sometimes twice and out of order."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from delivery.transports.base import (
    AccountState,
    Inbound,
    InboundEvent,
    Receipt,
    ReceiptState,
    SessionChanged,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.reading import at, items, moment, text
from delivery.transports.reports.signatures import report, require_signature, same
from delivery.transports.vocabulary.cloud_api import ADVICE
from delivery.transports.vocabulary.whatsapp import canonical

STATES = {
    "sent": ReceiptState.SENT,
    "delivered": ReceiptState.DELIVERED,
    "read": ReceiptState.READ,
    "played": ReceiptState.READ,
    "failed": ReceiptState.FAILED,
}
# Meta closed the account, or keeps it from sending.
CLOSED = frozenset({"DISABLED_UPDATE", "ACCOUNT_RESTRICTION", "ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED"})
TEXTS = (
    ("text", "body"),
    ("button", "text"),
    ("interactive", "button_reply", "title"),
    ("interactive", "list_reply", "title"),
    ("image", "caption"),
    ("video", "caption"),
    ("document", "caption"),
)


def challenge(query: Mapping[str, str], secret: str) -> str:
    """Meta asks once whether we know the word that was entered in its console."""
    known = bool(secret) and same(query.get("hub.verify_token", ""), secret)
    if query.get("hub.mode") != "subscribe" or not known:
        raise WebhookRefusedError("The verify token is wrong.")
    return query.get("hub.challenge", "")


def parse(request: WebhookRequest, *, phone_id: str, app_secret: str) -> list[InboundEvent]:
    """The events of our number; raises WebhookRefusedError.

    There is no time to check: Meta tries again for days, and an event that comes twice has its old id.
    """
    signature = request.headers.get("x-hub-signature-256", "")
    if not signature.startswith("sha256="):
        raise WebhookRefusedError("The report is not signed.")
    require_signature(signature.removeprefix("sha256="), request.body, secret=app_secret, algorithm="sha256")
    told = [
        (change, moment(at(entry, "time"), otherwise=request.received_at))
        for entry in items(report(request), "entry")
        for change in items(entry, "changes")
    ]
    return [event for change, when in told for event in _events(change, when, phone_id, request)]


def _events(change: Any, when: datetime, phone_id: str, request: WebhookRequest) -> Iterator[InboundEvent]:
    value = at(change, "value")
    if text(change, "field") == "account_update":
        yield from _closed(value, when)
    # One app has one address for all of its numbers.
    if text(value, "metadata", "phone_number_id") != phone_id:
        return
    for message in items(value, "messages"):
        yield from _inbound(message, request)
    for status in items(value, "statuses"):
        yield from _receipt(status, request)


def _inbound(message: Any, request: WebhookRequest) -> Iterator[Inbound]:
    told, sender = text(message, "id"), text(message, "from")
    # A reaction or a note that a number changed is no reply.
    if not told or not sender or text(message, "type") in {"reaction", "system"}:
        return
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=canonical(sender),
        chat=canonical(sender),
        text=next(filter(None, (text(message, *path) for path in TEXTS)), ""),
        at=moment(at(message, "timestamp"), otherwise=request.received_at),
    )


def _receipt(status: Any, request: WebhookRequest) -> Iterator[Receipt]:
    told, state = text(status, "id"), STATES.get(text(status, "status"))
    if not told or state is None:
        return
    yield Receipt(
        event_id=f"receipt:{told}:{state}",
        provider_id=told,
        state=state,
        at=moment(at(status, "timestamp"), otherwise=request.received_at),
        reason=_why(at(status, "errors", 0)),
    )


def _why(error: Any) -> str:
    code = at(error, "code")
    if not isinstance(code, int):
        return ""
    said = text(error, "error_data", "details") or text(error, "title") or text(error, "message")
    return f"{ADVICE.get(code, said)[:200]} ({code})"


def _closed(value: Any, when: datetime) -> Iterator[SessionChanged]:
    """It has no id: what was said at one time is one event, also when it is said again another day."""
    if (event := text(value, "event")) in CLOSED:
        yield SessionChanged(
            event_id=f"account:{event}:{when:%Y%m%dT%H%M%S}",
            state=AccountState.BLOCKED,
            at=when,
            reason=f"Meta restricted the account ({event})",
        )
