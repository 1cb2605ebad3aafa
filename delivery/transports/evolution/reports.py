"""Reads Evolution's reports, and sets where it reports.

Every report has the instance's API key in it: no part of a body may be logged.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from delivery.transports.base import (
    AccountState,
    AddressLearnt,
    FirstContactsLocked,
    Inbound,
    InboundEvent,
    Known,
    Receipt,
    ReceiptState,
    SessionChanged,
    Webhook,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.reading import at, items, moment, text
from delivery.transports.http.signatures import report, same
from delivery.transports.whatsapp.addresses import (
    ACKS,
    CLOSED_FOR_GOOD,
    NO_CHATS,
    behind,
    canonical,
    is_chat,
    is_hidden,
    known,
    learnt,
)
from delivery.transports.whatsapp.content import said

EVENTS = ("MESSAGES_UPSERT", "MESSAGES_UPDATE", "CONNECTION_UPDATE")
STATES: Mapping[str, AccountState] = {
    "open": AccountState.WORKING,
    # Also while it reconnects by itself, which it does after every restart: no sign that it was logged out.
    "connecting": AccountState.STARTING,
    "close": AccountState.STOPPED,
}
STATUSES: Mapping[str, ReceiptState] = {
    "ERROR": ReceiptState.FAILED,
    "SERVER_ACK": ReceiptState.SENT,
    "DELIVERY_ACK": ReceiptState.DELIVERED,
    "READ": ReceiptState.READ,
    "PLAYED": ReceiptState.READ,
}


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
    """Return the webhook settings in both forms: the documented flat one, and the one of servers since 2.1."""
    inside = webhook_of(webhook)
    flat = {name: inside[name] for name in ("enabled", "url", "events")}
    return {**flat, "webhookByEvents": False, "webhookBase64": False, "webhook": inside}


def parse(request: WebhookRequest, *, instance: str) -> list[InboundEvent]:
    """Return the events of our instance; raise WebhookRefusedError."""
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
    """Require a token that was signed for some minutes, or else the secret itself: the body has no signature."""
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
            # Its times are checked below, by the clock of the receiver.
            options={"require": ["exp"], "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError:
        raise WebhookRefusedError("The token is wrong.") from None
    if moment(claims["exp"], otherwise=datetime.min.replace(tzinfo=UTC)) < request.received_at:
        raise WebhookRefusedError("The token has expired.")


def _inbound(row: Any, request: WebhookRequest) -> Iterator[AddressLearnt | Inbound]:
    """Return the message that a person wrote. Our own messages come too, and tell who is behind a hidden address."""
    key = at(row, "key")
    told, chat, words = text(key, "id"), text(key, "remoteJid"), said(at(row, "message"))
    pairs = _pairs(key)
    yield from learnt(pairs)
    if not told or not is_chat(chat) or at(key, "fromMe") is not False or words is None:
        return
    group = chat.endswith("@g.us")
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=behind(text(key, "participant") if group else chat, pairs),
        chat=behind(chat, pairs),
        text=words,
        at=moment(at(row, "messageTimestamp"), otherwise=request.received_at),
    )


def _pairs(key: Any) -> list[Known]:
    """Return pairs of addresses: a person who hides a number is ...@lid; the field of the number differs by version."""
    chat, member = text(key, "remoteJid"), text(key, "participant")
    # Of a message of ours, the sender's number is our own, and the chat somebody else's.
    sender = text(key, "senderPn") if at(key, "fromMe") is False else ""
    return known(
        (chat, text(key, "remoteJidAlt")),
        (chat, sender),
        (member, text(key, "participantAlt")),
        (member, text(key, "participantPn")),
    )


def _updates(row: Any, request: WebhookRequest) -> Iterator[Receipt | FirstContactsLocked]:
    told = text(row, "keyId") or text(row, "key", "id")
    status = at(row, "status") if at(row, "status") is not None else at(row, "update", "status")
    # As a name, or as Baileys' number.
    state = STATUSES.get(status) if isinstance(status, str) else _by_number(status)
    mine = at(row, "fromMe") is True or at(row, "key", "fromMe") is True
    if not told or state is None or not mine:
        return
    stubs = items(row, "messageStubParameters") or items(row, "update", "messageStubParameters")
    locked = next((NO_CHATS[code] for code in NO_CHATS if code in stubs), "")
    # Evolution's own times are local ones that say they are UTC.
    at_ = request.received_at
    chat = text(row, "remoteJid") or text(row, "key", "remoteJid")
    yield Receipt(
        event_id=f"receipt:{told}:{state}",
        provider_id=told,
        state=state,
        at=at_,
        reason=locked,
        chat=canonical(chat) if is_hidden(chat) else "",
    )
    if locked:
        yield FirstContactsLocked(event_id=f"locked:{told}", at=at_, reason=locked)


def _by_number(status: object) -> ReceiptState | None:
    """Return the state for Baileys' number, which counts from 0, an error; WhatsApp Web's numbers are one less."""
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
