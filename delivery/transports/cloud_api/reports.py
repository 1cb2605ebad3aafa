"""Reads Meta's reports: messages and statuses, several in one report, sometimes twice and out of order."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from delivery.outcomes import AccountBlocked, NotConnected, RateLimited
from delivery.transports.base import (
    AccountState,
    ConsentTold,
    Inbound,
    InboundEvent,
    Known,
    OwnLimitsChanged,
    Receipt,
    ReceiptState,
    SessionChanged,
    SlowDownAsked,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.cloud_api import errors
from delivery.transports.http.reading import at, items, moment, text
from delivery.transports.http.signatures import report, require_signature, same
from delivery.transports.whatsapp.addresses import canonical, learnt

STATES = {
    "sent": ReceiptState.SENT,
    "delivered": ReceiptState.DELIVERED,
    "read": ReceiptState.READ,
    "played": ReceiptState.READ,
    "failed": ReceiptState.FAILED,
}
# Meta closed the account, or keeps it from sending.
CLOSED = frozenset({"DISABLED_UPDATE", "ACCOUNT_RESTRICTION", "ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED"})
# Meta changed how many people the portfolio may write to.
LIMITS_CHANGED = frozenset({"business_capability_update", "phone_number_quality_update"})
# Not a new message from a person: a reaction, a note that a number changed, an edit or a deletion of an earlier
# message, and what Meta cannot pass on.
NO_REPLY = frozenset(
    {"reaction", "system", "edit", "revoke", "unsupported", "unknown", "request_welcome", "errors"}
)
TEXTS = (
    ("text", "body"),
    ("button", "text"),
    ("button", "payload"),
    ("interactive", "button_reply", "title"),
    ("interactive", "list_reply", "title"),
    ("interactive", "nfm_reply", "body"),
    ("image", "caption"),
    ("video", "caption"),
    ("document", "caption"),
    ("order", "text"),
)
# The button by which Meta's marketing templates offer to opt out.
STOP_BUTTON = "stop promotions"
WANTED = {"stop": False, "resume": True}
NOT_THERE = frozenset({131026})  # the number is not on WhatsApp
STOPPED_MARKETING = 131050  # a message failed, because its recipient had stopped them


def challenge(query: Mapping[str, str], secret: str) -> str:
    """Answer Meta's one-time question whether we know the word that was entered in its console."""
    known = bool(secret) and same(query.get("hub.verify_token", ""), secret)
    if query.get("hub.mode") != "subscribe" or not known:
        raise WebhookRefusedError("The verify token is wrong.")
    return query.get("hub.challenge", "")


def parse(request: WebhookRequest, *, phone_id: str, app_secret: str) -> list[InboundEvent]:
    """Return the events of our number; raise WebhookRefusedError.

    No time is checked: Meta tries again for days, and an event that comes twice has its old id.
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
    if text(change, "field") in LIMITS_CHANGED:
        # Of the whole portfolio, and without an id of its own: the account is asked for what holds now.
        yield OwnLimitsChanged(event_id=f"limits:{when:%Y%m%dT%H%M%S}", at=when)
    # One app has one address for all of its numbers.
    if text(value, "metadata", "phone_number_id") != phone_id:
        return
    yield from learnt(_known(value))
    for message in items(value, "messages"):
        yield from _told(message, request)
    for status in items(value, "statuses"):
        yield from _receipt(status, request)
    for preference in items(value, "user_preferences"):
        yield from _preference(preference, request)


def _known(value: Any) -> Iterator[Known]:
    """Return the numbers behind the ids that Meta gives to people who hide theirs."""
    pairs = [
        (text(each, name), text(each, "wa_id"))
        for each in items(value, "contacts")
        for name in ("user_id", "parent_user_id")
    ]
    pairs += [
        (text(each, name), text(each, "recipient_id"))
        for each in items(value, "statuses")
        for name in ("recipient_user_id", "parent_recipient_user_id")
        if text(each, "recipient_type") != "group"
    ]
    for hidden, number in dict.fromkeys(pairs):
        if hidden and number.isdecimal():
            yield Known(hidden=hidden, address=canonical(number))


def _told(message: Any, request: WebhookRequest) -> Iterator[ConsentTold | Inbound]:
    """Return what a person wrote or pressed; an opt-out comes before the reply that carries it."""
    told, sender = text(message, "id"), text(message, "from")
    sender = canonical(sender) if sender else _user_id(message, "from_user_id", "from_parent_user_id")
    if not told or not sender:
        return
    when = moment(at(message, "timestamp"), otherwise=request.received_at)
    wanted = _wanted(message)
    if wanted is not None:
        yield ConsentTold(event_id=f"consent:{told}", sender=sender, wanted=wanted, at=when)
    if text(message, "type") not in NO_REPLY:
        yield Inbound(
            event_id=f"message:{told}",
            provider_id=told,
            sender=sender,
            chat=text(message, "group_id") or sender,
            text=next(filter(None, (text(message, *path) for path in TEXTS)), ""),
            at=when,
        )


def _wanted(message: Any) -> bool | None:
    """Return whether the sender wants messages from now on; None where the message does not say."""
    if text(message, "system", "type") == "user_preference_changed":
        return WANTED.get(text(message, "system", "marketing"))
    pressed = {text(message, "button", name).strip().casefold() for name in ("text", "payload")}
    return False if STOP_BUTTON in pressed else None


def _preference(preference: Any, request: WebhookRequest) -> Iterator[ConsentTold]:
    number, wanted = text(preference, "wa_id"), WANTED.get(text(preference, "value"))
    sender = canonical(number) if number else _user_id(preference, "user_id", "parent_user_id")
    if not sender or wanted is None or text(preference, "category") not in {"", "marketing_messages"}:
        return
    when = moment(at(preference, "timestamp"), otherwise=request.received_at)
    yield ConsentTold(
        event_id=f"preference:{sender}:{wanted}:{when:%Y%m%dT%H%M%S}", sender=sender, wanted=wanted, at=when
    )


def _user_id(told: Any, *names: str) -> str:
    """Return Meta's id for a person who hides their number: first the one that only this business gets."""
    return next(filter(None, (text(told, name) for name in names)), "")


def _receipt(
    status: Any, request: WebhookRequest
) -> Iterator[ConsentTold | Receipt | SessionChanged | SlowDownAsked]:
    """Return what a status says about a message, about its recipient, and about the account."""
    told, state = text(status, "id"), STATES.get(text(status, "status"))
    if not told or state is None:
        return
    when, number = (
        moment(at(status, "timestamp"), otherwise=request.received_at),
        text(status, "recipient_id"),
    )
    hidden = _user_id(status, "recipient_user_id", "parent_recipient_user_id")
    code, group = at(status, "errors", 0, "code"), text(status, "recipient_type") == "group"
    if code == STOPPED_MARKETING and (number or hidden):
        sender = canonical(number) if number else hidden
        yield ConsentTold(event_id=f"consent:{told}", sender=sender, wanted=False, at=when)
    if code in NOT_THERE and state is ReceiptState.FAILED:
        state = ReceiptState.BOUNCED
    yield Receipt(
        event_id=f"receipt:{told}:{state}",
        provider_id=told,
        state=state,
        at=when,
        reason=_why(at(status, "errors", 0)),
        # The ledger knows to whom the message went: so an answer from this id finds them.
        chat="" if number or group else hidden,
    )
    if state is ReceiptState.FAILED and isinstance(code, int):
        yield from _about_account(code, told, when, reason=_why(at(status, "errors", 0)))


def _about_account(
    code: int, told: str, when: datetime, *, reason: str
) -> Iterator[SessionChanged | SlowDownAsked]:
    """Return what a code does to the account: the same as in the answer to a message."""
    match errors.outcome(code, reason):
        case AccountBlocked():
            state = AccountState.BLOCKED
        case NotConnected():
            state = AccountState.STOPPED
        case RateLimited():
            # Many messages fail at once: one slow-down a minute is enough.
            yield SlowDownAsked(event_id=f"slow:{code}:{when:%Y%m%dT%H%M}", at=when, reason=reason)
            return
        case _:
            return
    yield SessionChanged(event_id=f"account:{code}:{told}", state=state, at=when, reason=reason)


def _why(error: Any) -> str:
    code = at(error, "code")
    if not isinstance(code, int):
        return ""
    said = text(error, "error_data", "details") or text(error, "title") or text(error, "message")
    return f"{errors.ADVICE.get(code, said)[:200]} ({code})"


def _closed(value: Any, when: datetime) -> Iterator[SessionChanged]:
    """Return the event of a restriction. It has no id of its own: reports of the same time are one event."""
    if (event := text(value, "event")) in CLOSED:
        yield SessionChanged(
            event_id=f"account:{event}:{when:%Y%m%dT%H%M%S}",
            state=AccountState.BLOCKED,
            at=when,
            reason=f"Meta restricted the account ({event})",
        )
