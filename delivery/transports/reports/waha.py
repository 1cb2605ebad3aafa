"""What WAHA reports and where to, and its lists of groups; each engine inside it has shapes of its own."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from delivery.transports.base import (
    AccountState,
    Contact,
    Inbound,
    InboundEvent,
    Receipt,
    SessionChanged,
    Webhook,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.reading import at, items, moment, parsed, text
from delivery.transports.reports.signatures import report, require_fresh, require_signature
from delivery.transports.vocabulary.whatsapp import ACKS, canonical, is_chat

EVENTS = ("message", "message.ack", "session.status")
FRESH = timedelta(minutes=15)  # it tries again for some minutes, with the same body
# STARTING is not among them: it says nothing yet about where it will end.
STATES: Mapping[str, AccountState] = {
    "WORKING": AccountState.WORKING,
    "SCAN_QR_CODE": AccountState.PAIRING,
    "PASSKEY_REQUIRED": AccountState.PAIRING,
    "PASSKEY_CONFIRMATION_REQUIRED": AccountState.PAIRING,
    "STOPPED": AccountState.STOPPED,
    "FAILED": AccountState.STOPPED,
}


def config(known: object, webhook: Webhook | None) -> dict[str, Any]:
    """The session's configuration with our webhook in it; what others set stays."""
    kept = dict(known) if isinstance(known, dict) else {}
    if webhook is None:
        return kept
    ours = {
        "url": webhook.url,
        "events": list(EVENTS),
        "hmac": {"key": webhook.secret},
        "retries": {"policy": "exponential", "delaySeconds": 2, "attempts": 8},
    }
    # Our address ends in a key that changes, on a host that may: what comes before it stays ours.
    others = [each for each in items(kept, "webhooks") if _place(text(each, "url")) != _place(webhook.url)]
    return {**kept, "webhooks": [*others, ours]}


def reports_already(known: object, webhook: Webhook) -> bool:
    """Not by comparing all of it: servers fill in defaults of their own."""
    return any(
        text(each, "url") == webhook.url
        and text(each, "hmac", "key") == webhook.secret
        and set(EVENTS) <= {event for event in items(each, "events") if isinstance(event, str)}
        for each in items(known, "webhooks")
    )


def _place(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[0]


def parse(request: WebhookRequest, *, session: str) -> list[InboundEvent]:
    """The events of our session; raises WebhookRefusedError."""
    headers = request.headers
    if headers.get("x-webhook-hmac-algorithm", "sha512").lower() != "sha512":
        raise WebhookRefusedError("The report is signed in a way that is not known.")
    require_signature(
        headers.get("x-webhook-hmac", ""), request.body, secret=request.secret, algorithm="sha512"
    )
    body = report(request)
    # The time in the body is signed, the one in the header is not; older servers have only that.
    told = at(body, "timestamp") or headers.get("x-webhook-timestamp")
    made_at = moment(_seconds(told), otherwise=request.received_at - 2 * FRESH)
    require_fresh(made_at, request.received_at, within=FRESH)
    if text(body, "session") != session:
        return []
    payload = at(body, "payload")
    match text(body, "event"):
        case "message":
            return list(_inbound(payload, request))
        case "message.ack":
            return list(_receipts(payload, request))
        case "session.status":
            event_id = text(body, "id") or headers.get("x-webhook-request-id", "") or f"status:{told}"
            state = STATES.get(text(payload, "status"))
            reason = f"the session is {text(payload, 'status')}"
            return (
                []
                if state is None
                else [SessionChanged(event_id=event_id, state=state, at=made_at, reason=reason)]
            )
    return []


def message_id(told: str) -> str:
    """Without what an engine puts around it: true_120363@g.us_3EB0A1_4915@c.us is the message 3EB0A1."""
    parts = told.split("_")
    return parts[2] if len(parts) > 2 and parts[0] in {"true", "false"} else told


def groups(body: bytes) -> Iterator[Contact]:
    found = parsed(body)
    rows = found if isinstance(found, list) else list(found.values()) if isinstance(found, dict) else []
    for row in rows:
        address = text(row, "id") or text(row, "id", "_serialized") or text(row, "JID")
        name = (
            text(row, "subject")
            or text(row, "name")
            or text(row, "Name")
            or text(row, "groupMetadata", "subject")
        )
        if address:
            yield Contact(address=address, name=name or address, kind="group")


def _inbound(payload: Any, request: WebhookRequest) -> Iterator[Inbound]:
    told, chat = message_id(text(payload, "id")), text(payload, "from")
    if not told or not is_chat(chat) or at(payload, "fromMe") is not False:
        return
    sender = text(payload, "participant") or chat
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=canonical(_number_behind(payload, sender)),
        chat=canonical(_number_behind(payload, chat)),
        text=text(payload, "body"),
        at=moment(at(payload, "timestamp"), otherwise=request.received_at),
    )


def _number_behind(payload: Any, jid: str) -> str:
    """Whoever hides a number is ...@lid; the engine often knows the number all the same."""
    if not jid.endswith("@lid"):
        return jid
    key = at(payload, "_data", "key")
    known = [text(key, name) for name in ("remoteJidAlt", "participantAlt", "senderPn", "participantPn")]
    known += [text(payload, "_data", "Info", "SenderAlt")]
    return next((other for other in known if other.endswith(("@c.us", "@s.whatsapp.net"))), jid)


def _receipts(payload: Any, request: WebhookRequest) -> Iterator[Receipt]:
    told, ack = message_id(text(payload, "id")), at(payload, "ack")
    state = ACKS.get(ack) if isinstance(ack, int) else None
    # Acknowledgements of what others wrote come too.
    if not told or state is None or at(payload, "fromMe") is not True:
        return
    yield Receipt(event_id=f"receipt:{told}:{state}", provider_id=told, state=state, at=request.received_at)


def _seconds(milliseconds: object) -> object:
    try:
        return float(milliseconds) / 1000  # type: ignore[arg-type]  # refused by the next line
    except (TypeError, ValueError):
        return None
