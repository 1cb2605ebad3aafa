"""Reports of the sandbox: what they mean, and which are refused."""

import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delivery.transports.base import (
    AccountState,
    FirstContactsLocked,
    Inbound,
    InboundEvent,
    Receipt,
    ReceiptState,
    SessionChanged,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.sandbox.reports import reported

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MS = int(NOW.timestamp() * 1000)
SECRET = "s3cret"


def request(body: bytes, *, secret: str = SECRET, sent_at: str = str(MS)) -> WebhookRequest:
    digest = hmac.new(secret.encode(), sent_at.encode() + b"." + body, "sha256").hexdigest()
    headers = {"x-sandbox-timestamp": sent_at, "x-sandbox-signature": f"sha256={digest}"}
    return WebhookRequest(headers=headers, body=body, secret=SECRET, received_at=NOW)


def read(**report: Any) -> list[InboundEvent]:
    return reported(request(json.dumps({"id": "e1", "at": MS, "account": "choir", **report}).encode()))


def test_somebody_wrote() -> None:
    message = {"id": "r1", "from": "4915@c.us", "chat": "g", "text": "Hi 👋"}
    assert read(event="message", message=message) == [
        Inbound(event_id="e1", provider_id="r1", sender="4915@c.us", chat="g", text="Hi 👋", at=NOW)
    ]


def test_receipts_of_one_message_and_state_are_one() -> None:
    expected = [Receipt(event_id="m1:read", provider_id="m1", state=ReceiptState.READ, at=NOW)]
    assert read(event="receipt", message={"id": "m1"}, state="read") == expected
    assert read(id="e2", event="receipt", message={"id": "m1"}, state="read") == expected


def test_the_session_changed() -> None:
    assert read(event="session", state="BANNED") == [
        SessionChanged(event_id="e1", state=AccountState.BLOCKED, at=NOW)
    ]


def test_first_contacts_are_locked() -> None:
    assert read(event="first_contacts_locked", until=MS + 60_000) == [
        FirstContactsLocked(event_id="e1", at=NOW, until=NOW + timedelta(minutes=1))
    ]


def test_what_means_nothing_to_us_is_no_error() -> None:
    assert read(event="weather") == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"5",
        b"\xff",
        b"{}",
        b'{"id": "e", "at": "x", "event": "message"}',
        b'{"id": "e", "at": 1e300, "event": "message"}',
        b'{"id": "e", "at": 1, "event": "receipt", "message": 5}',
        b'{"id": "e", "at": 1, "event": "receipt", "state": "lost", "message": {"id": "m"}}',
        b'{"id": "e", "at": 1, "event": "session", "state": "DANCING"}',
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefusedError, match="not a report"):
        reported(request(body))


def test_another_secret_is_refused() -> None:
    with pytest.raises(WebhookRefusedError, match="signature"):
        reported(request(b"{}", secret="guessed"))


@pytest.mark.parametrize("sent_at", [str(MS - 301_000), str(MS + 301_000), "", "soon", "9" * 30])
def test_a_stale_report_is_refused_though_it_is_signed(sent_at: str) -> None:
    with pytest.raises(WebhookRefusedError, match="stale"):
        reported(request(b"{}", sent_at=sent_at))


def test_a_new_time_on_an_old_report_does_not_pass() -> None:
    old = request(b"{}", sent_at=str(MS - 600_000))
    forged = WebhookRequest(
        headers={**old.headers, "x-sandbox-timestamp": str(MS)}, body=b"{}", secret=SECRET, received_at=NOW
    )
    with pytest.raises(WebhookRefusedError, match="signature"):
        reported(forged)
