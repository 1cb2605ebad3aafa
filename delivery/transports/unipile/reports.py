"""Reads Unipile's reports. Nothing is signed: a header that we chose ourselves proves that it is Unipile."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from delivery.transports.base import (
    AccountState,
    Inbound,
    InboundEvent,
    Receipt,
    ReceiptState,
    SessionChanged,
    Webhook,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.email.reports import fresh_subject
from delivery.transports.http.reading import items, text
from delivery.transports.http.signatures import report, same
from delivery.transports.mail.authentication import Verdict, verdict
from delivery.transports.mail.automatic import is_automatic
from delivery.transports.mail.mime import LONGEST_VALUE, MOST_BYTES, MOST_HEADERS, Part
from delivery.transports.mail.page_words import words_of
from delivery.transports.mail.quoting import own_words

PROOF = "Unipile-Auth"
EVENTS: Mapping[str, tuple[str, ...]] = {
    "messaging": ("message_received", "message_delivered", "message_read"),
    "email": ("mail_received",),
    "account_status": (),
}
RECEIPTS = {"message_delivered": ReceiptState.DELIVERED, "message_read": ReceiptState.READ}
STATES: Mapping[str, AccountState] = {
    "OK": AccountState.WORKING,
    "CREATION_SUCCESS": AccountState.WORKING,
    "RECONNECTED": AccountState.WORKING,
    "SYNC_SUCCESS": AccountState.WORKING,
    "CONNECTING": AccountState.STARTING,  # the account may be back in a moment
    "STOPPED": AccountState.STOPPED,
    "ERROR": AccountState.STOPPED,
    "CREDENTIALS": AccountState.BLOCKED,
    "PERMISSIONS": AccountState.BLOCKED,
    "DELETED": AccountState.BLOCKED,
}


def registration(webhook: Webhook, *, source: str, account: str, name: str) -> dict[str, Any]:
    """Return the request that tells Unipile where and what to report."""
    told = {
        "request_url": webhook.url,
        "name": name,
        "source": source,
        "account_ids": [account],
        "format": "json",
        # Webhooks that are made by the API do not say that they carry JSON.
        "headers": [
            {"key": "Content-Type", "value": "application/json"},
            {"key": PROOF, "value": webhook.secret},
        ],
    }
    return {**told, "events": list(EVENTS[source])} if EVENTS[source] else told


def parse(request: WebhookRequest, *, account: str) -> list[InboundEvent]:
    """Return the events of our account; raise WebhookRefusedError."""
    told = request.headers.get(PROOF.lower(), "")
    if not request.secret or not same(told, request.secret):
        raise WebhookRefusedError("The secret is missing or wrong.")
    body = report(request)
    status = body.get("AccountStatus")
    if text(status if isinstance(status, dict) else body, "account_id") != account:
        return []
    return list(_session(status, request) if isinstance(status, dict) else _events(body, request))


def _events(body: dict[str, Any], request: WebhookRequest) -> Iterator[InboundEvent]:
    event, message_id = text(body, "event"), text(body, "message_id")
    if event == "message_received" and message_id:
        yield from _message(body, message_id, request)
    elif event in RECEIPTS and message_id:
        state = RECEIPTS[event]
        yield Receipt(
            event_id=f"{message_id}:{state}",
            provider_id=message_id,
            state=state,
            at=_when(body, "timestamp", request),
        )
    elif event == "mail_received" and text(body, "email_id"):
        yield from _mail(body, text(body, "email_id"), request)


def _message(body: dict[str, Any], message_id: str, request: WebhookRequest) -> Iterator[Inbound]:
    sender = text(body, "sender", "attendee_provider_id")
    # What we sent ourselves is reported too, and what happened in a chat, such as a reaction or a new name.
    own = _is_set(body, "is_sender") or sender == text(body, "account_info", "user_id")
    if not sender or own or _is_set(body, "is_event"):
        return
    yield Inbound(
        event_id=message_id,
        provider_id=message_id,
        sender=sender,
        chat=text(body, "chat_id") if _is_set(body, "is_group") else sender,
        text=text(body, "message"),
        at=_when(body, "timestamp", request),
    )


def _is_set(body: dict[str, Any], name: str) -> bool:
    """Return whether a flag is set: as a number in the description, as true or as a string in what is sent."""
    return body.get(name) in (1, True, "1", "true")


def _mail(body: dict[str, Any], email_id: str, request: WebhookRequest) -> Iterator[Inbound]:
    """Return a person's e-mail, read as mailboxes are: no automatic answer, no forged sender, no quotation."""
    sender, mail = text(body, "from_attendee", "identifier").lower(), _headers(body)
    forged = verdict(mail, trusted="", domain=sender.rpartition("@")[2]) is Verdict.FAILED
    if not sender or forged or is_automatic(mail, sender):
        return
    words = text(body, "body_plain").strip() or words_of(text(body, "body")[:MOST_BYTES])
    subject = fresh_subject(text(body, "subject"))
    yield Inbound(
        event_id=email_id,
        provider_id=email_id,
        sender=sender,
        chat=sender,
        text=own_words(words) or subject,
        at=_when(body, "date", request),
        subject=subject,
    )


def _headers(body: dict[str, Any]) -> Part:
    """Return the headers of an e-mail, as far as they are reported; its subject always is."""
    told = [
        (text(each, "name").lower(), text(each, "value")[:LONGEST_VALUE]) for each in items(body, "headers")
    ]
    subject = ("subject", text(body, "subject")[:LONGEST_VALUE])
    return Part((subject, *[each for each in told[:MOST_HEADERS] if each[0] != "subject"]), b"")


def _session(status: dict[str, Any], request: WebhookRequest) -> Iterator[SessionChanged]:
    word = text(status, "message")
    if word in STATES:
        # The report has no time of its own, and the same state is reported again at another time.
        moment = request.received_at
        yield SessionChanged(
            event_id=f"{word}:{moment:%Y%m%dT%H%M}",
            state=STATES[word],
            at=moment,
            reason=f"Unipile says {word}",
        )


def _when(body: dict[str, Any], name: str, request: WebhookRequest) -> datetime:
    try:
        told = datetime.fromisoformat(text(body, name))
    except ValueError:
        return request.received_at
    return told if told.tzinfo else told.replace(tzinfo=UTC)
