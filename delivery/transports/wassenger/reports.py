"""Reads Wassenger's reports, and its names for the state of a device."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
from delivery.transports.http.reading import at, text
from delivery.transports.http.signatures import report, require_fresh, require_signature
from delivery.transports.whatsapp.addresses import canonical, is_chat

FRESH = timedelta(hours=25)  # it tries again for a day, with the same body
STATES = {
    "online": AccountState.WORKING,
    "ready": AccountState.WORKING,
    "new": AccountState.PAIRING,
    "authorize": AccountState.PAIRING,
    "pairing": AccountState.PAIRING,
    "banned": AccountState.BLOCKED,
    "blocked": AccountState.BLOCKED,
}
# Messages that no person wrote.
NO_REPLY = frozenset({"call_log", "notification", "poll_vote", "protocol", "reaction", "revoked", "system"})
RECEIPTS = {
    "message:out:sent": ReceiptState.SENT,
    "message:out:delivered": ReceiptState.DELIVERED,
    "message:out:read": ReceiptState.READ,
    "message:out:failed": ReceiptState.FAILED,
}


def state(device: Any) -> AccountState:
    """Return the state of a device: its session has a state of its own, which says more than the device's."""
    told = text(device, "session", "status") or text(device, "status")
    return STATES.get(told, AccountState.STOPPED)


def parse(request: WebhookRequest, *, device: str, secret: str) -> list[InboundEvent]:
    """Return the events of our device; raise WebhookRefusedError."""
    told = request.headers.get("x-wassenger-signature", "")
    if not told.startswith("sha256="):
        raise WebhookRefusedError("The report is not signed.")
    require_signature(told.removeprefix("sha256="), request.body, secret=secret, algorithm="sha256")
    body = report(request)
    made_at = _moment(text(body, "createdAt"), otherwise=request.received_at - 2 * FRESH)
    require_fresh(made_at, request.received_at, within=FRESH)
    if (text(body, "device") or text(body, "device", "id")) != device:
        return []
    event, data = text(body, "event"), at(body, "data")
    # Beside the message, or the message itself: both are in use.
    message = data if at(data, "message") is None else at(data, "message")
    if event == "message:in:new":
        return list(_inbound(message, made_at))
    if event in RECEIPTS:
        return list(_receipt(message, RECEIPTS[event], made_at))
    if event in {"device:status:changed", "session:status:changed"}:
        return list(_session(data, text(body, "id"), made_at))
    return []


def _inbound(message: Any, made_at: datetime) -> Iterator[Inbound]:
    told = text(message, "id")
    sender = text(message, "fromNumber") or text(message, "from")
    own = at(message, "fromMe") is True or text(message, "flow") == "outbound"
    if not told or not sender or own or text(message, "type") in NO_REPLY:
        return
    chat = text(message, "chat") or text(message, "chat", "id") or sender
    if not is_chat(chat):
        return
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=canonical(sender),
        chat=canonical(chat),
        text=text(message, "body") or text(message, "media", "caption"),
        at=_moment(text(message, "timestamp"), otherwise=made_at),
    )


def _receipt(message: Any, reached: ReceiptState, made_at: datetime) -> Iterator[Receipt]:
    if told := text(message, "id"):
        yield Receipt(
            event_id=f"receipt:{told}:{reached}",
            provider_id=told,
            state=reached,
            at=made_at,
            reason=text(message, "failureReason")[:200] if reached is ReceiptState.FAILED else "",
        )


def _session(data: Any, event_id: str, made_at: datetime) -> Iterator[SessionChanged]:
    device = at(data, "device") or data
    if event_id and (text(device, "session", "status") or text(device, "status")):
        yield SessionChanged(event_id=event_id, state=state(device), at=made_at)


def _moment(told: str, *, otherwise: datetime) -> datetime:
    try:
        found = datetime.fromisoformat(told)
    except ValueError:
        return otherwise
    return found if found.tzinfo else found.replace(tzinfo=UTC)
