"""What Evolution reports, and where to.

Every report has the instance's API key in it: no part of a body may be logged.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from delivery.outcomes import FIRST_CONTACTS_LOCKED
from delivery.transports.base import (
    AccountState,
    FirstContactsLocked,
    Inbound,
    InboundEvent,
    Receipt,
    ReceiptState,
    SessionChanged,
    Webhook,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.reading import at, items, moment, text
from delivery.transports.reports.signatures import report, same
from delivery.transports.vocabulary.whatsapp import (
    ACKS,
    CLOSED_FOR_GOOD,
    LOCKED,
    PERSONS,
    canonical,
    is_chat,
)

EVENTS = ("MESSAGES_UPSERT", "MESSAGES_UPDATE", "CONNECTION_UPDATE")
STATES: Mapping[str, AccountState] = {
    "open": AccountState.WORKING,
    "connecting": AccountState.PAIRING,
    "close": AccountState.STOPPED,
}
STATUSES: Mapping[str, ReceiptState] = {
    "ERROR": ReceiptState.FAILED,
    "SERVER_ACK": ReceiptState.SENT,
    "DELIVERY_ACK": ReceiptState.DELIVERED,
    "READ": ReceiptState.READ,
    "PLAYED": ReceiptState.READ,
}
NO_MESSAGES = ("reactionMessage", "encReactionMessage", "protocolMessage", "editedMessage")
TEXTS = (
    ("conversation",),
    ("extendedTextMessage", "text"),
    ("imageMessage", "caption"),
    ("videoMessage", "caption"),
    ("documentMessage", "caption"),
    ("documentWithCaptionMessage", "message", "documentMessage", "caption"),
    ("buttonsResponseMessage", "selectedDisplayText"),
    ("templateButtonReplyMessage", "selectedDisplayText"),
    ("listResponseMessage", "title"),
    ("ephemeralMessage", "message", "extendedTextMessage", "text"),
)


def webhook_of(webhook: Webhook) -> dict[str, Any]:
    return {
        "enabled": True,
        "url": webhook.url,
        "events": list(EVENTS),
        # Newer servers sign a token with it for each report; older ones send it as it is.
        "headers": {"jwt_key": webhook.secret},
        "byEvents": False,
        "base64": False,
    }


def webhook_update(webhook: Webhook) -> dict[str, Any]:
    """The published description has the fields side by side; the servers since 2.1 want them in `webhook`."""
    inside = webhook_of(webhook)
    flat = {name: inside[name] for name in ("enabled", "url", "events")}
    return {**flat, "webhookByEvents": False, "webhookBase64": False, "webhook": inside}


def parse(request: WebhookRequest, *, instance: str) -> list[InboundEvent]:
    """The events of our instance; raises WebhookRefusedError."""
    _require_token(request)
    body = report(request)
    if text(body, "instance") != instance:
        return []
    rows = items(body, "data")
    # MESSAGES_UPSERT where the address is split by event, messages.upsert elsewhere.
    match text(body, "event").lower().replace("_", "."):
        case "messages.upsert":
            return [event for row in rows for event in _inbound(row, request)]
        case "messages.update":
            return [event for row in rows for event in _updates(row, request)]
        case "connection.update":
            return [event for row in rows for event in _session(row, text(body, "date_time"), request)]
    return []


def _require_token(request: WebhookRequest) -> None:
    """There is no signature of the body: a token that was signed for some minutes, or else the secret itself."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not request.secret:
        raise WebhookRefusedError("The account has no secret to check reports with.")
    if kind.lower() == "bearer":
        _require_signed(token, request)
    elif not same(request.headers.get("jwt_key", ""), request.secret):
        raise WebhookRefusedError("The token is missing or wrong.")


def _require_signed(token: str, request: WebhookRequest) -> None:
    try:
        claims = jwt.decode(
            token.encode(errors="replace"),
            request.secret,
            algorithms=["HS256"],
            # Its times are read below, by the clock of whoever received it.
            options={"require": ["exp"], "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError:
        raise WebhookRefusedError("The token is wrong.") from None
    if moment(claims["exp"], otherwise=datetime.min.replace(tzinfo=UTC)) < request.received_at:
        raise WebhookRefusedError("The token has expired.")


def _inbound(row: Any, request: WebhookRequest) -> Iterator[Inbound]:
    key = at(row, "key")
    told, chat = text(key, "id"), text(key, "remoteJid")
    if not told or not is_chat(chat) or at(key, "fromMe") is not False or _is_no_message(row):
        return
    group = chat.endswith("@g.us")
    sender = text(key, "participant") if group else chat
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=canonical(_number_behind(key, sender)),
        chat=canonical(chat if group else _number_behind(key, chat)),
        text=next(filter(None, (text(row, "message", *path) for path in TEXTS)), ""),
        at=moment(at(row, "messageTimestamp"), otherwise=request.received_at),
    )


def _is_no_message(row: Any) -> bool:
    """A reaction, a deletion, an edit and what phones say to each other come as messages, and are no reply."""
    return any(at(row, "message", kind) is not None for kind in NO_MESSAGES)


def _number_behind(key: Any, jid: str) -> str:
    """Whoever hides a number is ...@lid; the server often knows the number all the same."""
    if not jid.endswith("@lid"):
        return jid
    known = (text(key, name) for name in ("remoteJidAlt", "participantAlt", "senderPn", "participantPn"))
    return next((other for other in known if other.endswith(PERSONS)), jid)


def _updates(row: Any, request: WebhookRequest) -> Iterator[Receipt | FirstContactsLocked]:
    told = text(row, "keyId") or text(row, "key", "id")
    status = at(row, "status") if at(row, "status") is not None else at(row, "update", "status")
    # As a name, or as Baileys' number.
    state = STATUSES.get(status) if isinstance(status, str) else _by_number(status)
    mine = at(row, "fromMe") is True or at(row, "key", "fromMe") is True
    if not told or state is None or not mine:
        return
    stubs = items(row, "messageStubParameters") or items(row, "update", "messageStubParameters")
    locked = FIRST_CONTACTS_LOCKED in stubs
    reason = LOCKED if locked else ""
    # Evolution's own times are local ones that say they are UTC.
    at_ = request.received_at
    yield Receipt(event_id=f"receipt:{told}:{state}", provider_id=told, state=state, at=at_, reason=reason)
    if locked:
        yield FirstContactsLocked(event_id=f"locked:{told}", at=at_, reason=LOCKED)


def _by_number(status: object) -> ReceiptState | None:
    """Baileys counts from an error, 0; WhatsApp Web's numbers are one less."""
    return ACKS.get(status - 1) if isinstance(status, int) else None


def _session(row: Any, when: str, request: WebhookRequest) -> Iterator[SessionChanged]:
    told, why = text(row, "state"), at(row, "statusReason")
    if told not in {"open", "close"}:
        return
    state = STATES[told]
    if told == "close" and isinstance(why, int):
        state = CLOSED_FOR_GOOD.get(why, state)
    reason = "" if told == "open" else f"WhatsApp closed the connection ({why})"
    yield SessionChanged(
        event_id=f"connection:{told}:{when}", state=state, at=request.received_at, reason=reason[:200]
    )
