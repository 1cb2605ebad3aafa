"""Reads WAHA's reports and lists of groups, and sets where it reports; each engine inside it has its own formats."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from delivery.transports.base import (
    AccountState,
    AddressLearnt,
    Contact,
    Inbound,
    InboundEvent,
    Known,
    Receipt,
    SessionChanged,
    Webhook,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.reading import at, items, moment, parsed, text
from delivery.transports.http.signatures import report, require_fresh, require_signature
from delivery.transports.whatsapp.addresses import (
    ACKS,
    behind,
    canonical,
    is_chat,
    is_hidden,
    known,
    learnt,
    members,
)
from delivery.transports.whatsapp.content import said

EVENTS = ("message", "message.ack", "session.status")
# Where engines keep the message as WhatsApp sent it: NOWEB and GOWS.
CONTENTS = ("message", "Message")
# WEBJS' names for messages that no person wrote. Reactions, edits and deletions are events of their own.
NO_REPLY = frozenset(
    {
        "broadcast_notification",
        "call_log",
        "ciphertext",
        "debug",
        "e2e_notification",
        "gp2",
        "group_notification",
        "notification",
        "notification_template",
        "pinned_message",
        "poll_update",
        "protocol",
        "reaction",
        "revoked",
    }
)
FRESH = timedelta(minutes=15)  # it tries again for some minutes, with the same body
STATES: Mapping[str, AccountState] = {
    "WORKING": AccountState.WORKING,
    "STARTING": AccountState.STARTING,
    "SCAN_QR_CODE": AccountState.PAIRING,
    "PASSKEY_REQUIRED": AccountState.PAIRING,
    "PASSKEY_CONFIRMATION_REQUIRED": AccountState.PAIRING,
    "STOPPED": AccountState.STOPPED,
    "FAILED": AccountState.STOPPED,
}


def config(known: object, webhook: Webhook | None) -> dict[str, Any]:
    """Return the session's configuration with our webhook in it; other settings stay."""
    kept = dict(known) if isinstance(known, dict) else {}
    if webhook is None:
        return kept
    ours = {
        "url": webhook.url,
        "events": list(EVENTS),
        "hmac": {"key": webhook.secret},
        "retries": {"policy": "exponential", "delaySeconds": 2, "attempts": 8},
    }
    # Our address ends in a key that changes, and the host may change too: the path before the key identifies it.
    others = [each for each in items(kept, "webhooks") if _place(text(each, "url")) != _place(webhook.url)]
    return {**kept, "webhooks": [*others, ours]}


def reports_already(known: object, webhook: Webhook) -> bool:
    """Decide whether our webhook is set. Not all of it is compared: servers fill in defaults of their own."""
    return any(
        text(each, "url") == webhook.url
        and text(each, "hmac", "key") == webhook.secret
        and set(EVENTS) <= {event for event in items(each, "events") if isinstance(event, str)}
        for each in items(known, "webhooks")
    )


def _place(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[0]


def parse(request: WebhookRequest, *, session: str) -> list[InboundEvent]:
    """Return the events of our session; raise WebhookRefusedError."""
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
            return list(_session(text(payload, "status"), event_id, made_at))
    return []


def _session(status: str, event_id: str, made_at: datetime) -> Iterator[SessionChanged]:
    state = STATES.get(status)
    if state is not None and state is not AccountState.STARTING:  # that says nothing yet
        reason = f"the session is {status}"
        yield SessionChanged(event_id=event_id, state=state, at=made_at, reason=reason)


def message_id(told: str) -> str:
    """Return the id without the parts that an engine adds: true_120363@g.us_3EB0A1_4915@c.us is the message 3EB0A1."""
    parts = told.split("_")
    return parts[2] if len(parts) > 2 and parts[0] in {"true", "false"} else told


def _chat_in(told: str) -> str:
    """Return the chat in an id that has one: true_77@lid_3EB0A1 is of 77@lid."""
    parts = told.split("_")
    return parts[1] if len(parts) > 2 and parts[0] in {"true", "false"} else ""


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
            inside = items(row, "participants") or items(row, "Participants")
            inside = inside or items(row, "groupMetadata", "participants")
            yield Contact(address=address, name=name or address, kind="group", members=members(inside))


def _inbound(payload: Any, request: WebhookRequest) -> Iterator[AddressLearnt | Inbound]:
    told, chat = message_id(text(payload, "id")), text(payload, "from")
    # Of a message of ours, `from` is ourselves in some engines, and the other address somebody else's.
    if at(payload, "fromMe") is not False:
        return
    pairs, words = _pairs(payload), _words(payload)
    yield from learnt(pairs)
    if not told or not is_chat(chat) or words is None:
        return
    yield Inbound(
        event_id=f"message:{told}",
        provider_id=told,
        sender=behind(text(payload, "participant") or chat, pairs),
        chat=behind(chat, pairs),
        text=words,
        at=moment(at(payload, "timestamp"), otherwise=request.received_at),
    )


def _words(payload: Any) -> str | None:
    """Return the words of a message; None where it is no reply. WAHA's own field lacks some that its engine has."""
    content = next(
        (found for name in CONTENTS if isinstance(found := at(payload, "_data", name), dict)), None
    )
    inside = said(content) if content else ""
    if inside is None or text(payload, "_data", "type") in NO_REPLY:
        return None
    return text(payload, "body") or inside


def _pairs(payload: Any) -> list[Known]:
    """Return pairs of addresses: a person who hides a number is ...@lid, and the engine often names the number too."""
    chat, member = text(payload, "from"), text(payload, "participant")
    key, info = at(payload, "_data", "key"), at(payload, "_data", "Info")
    return known(
        (chat, text(key, "remoteJidAlt")),
        (chat, text(key, "senderPn")),
        (member, text(key, "participantAlt")),
        (member, text(key, "participantPn")),
        (member or chat, text(info, "SenderAlt")),
        (text(info, "Sender"), text(info, "SenderAlt")),
    )


def _receipts(payload: Any, request: WebhookRequest) -> Iterator[Receipt]:
    told, ack = message_id(text(payload, "id")), at(payload, "ack")
    state = ACKS.get(ack) if isinstance(ack, int) else None
    # Acknowledgements of messages from others come too.
    if not told or state is None or at(payload, "fromMe") is not True:
        return
    chat = _chat_in(text(payload, "id")) or text(payload, "to")
    yield Receipt(
        event_id=f"receipt:{told}:{state}",
        provider_id=told,
        state=state,
        at=request.received_at,
        chat=canonical(chat) if is_hidden(chat) else "",
    )


def _seconds(milliseconds: object) -> object:
    try:
        return float(milliseconds) / 1000  # type: ignore[arg-type]  # refused by the next line
    except (TypeError, ValueError):
        return None
