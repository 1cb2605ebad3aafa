"""Reports of e-mail providers, in the forms that their documentation shows."""

import base64
import hashlib
import hmac
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from delivery.transports.base import ConsentTold, InboundEvent, Receipt, WebhookRefusedError, WebhookRequest
from delivery.transports.email_provider.providers import PROVIDERS
from delivery.transports.email_provider.reports import HARD, VIEWS, parse

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
SECRET = "the-secret-of-the-address"
BASIC = {"authorization": "Basic " + base64.b64encode(f"paceline:{SECRET}".encode()).decode()}
TO = "reader@example.com"


def mailgun(event: str = "failed", /, **more: Any) -> dict[str, Any]:
    data = {
        "event": event,
        "recipient": TO,
        "timestamp": NOW.timestamp(),
        "message": {"headers": {"message-id": "m-1@school.example"}},
        **more,
    }
    return {"signature": {"timestamp": "1", "token": "t", "signature": "?"}, "event-data": data}


def mandrill(event: str, **message: Any) -> dict[str, str]:
    told = {"event": event, "_id": "m-1", "ts": int(NOW.timestamp()), "msg": {"email": TO, **message}}
    return {"mandrill_events": json.dumps([told])}


def sparkpost(kind: str, **more: Any) -> list[Any]:
    event = {"type": kind, "transmission_id": "m-1", "raw_rcpt_to": TO, "timestamp": "1700000000", **more}
    return [{"msys": {"message_event": event}}, {"msys": {}}]


def resend(kind: str, **data: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "created_at": "2026-11-19T12:00:00Z",
        "data": {"email_id": "m-1", "to": [TO], **data},
    }


def mailersend(kind: str, **more: Any) -> dict[str, Any]:
    email = {"message": {"id": "m-1"}, "recipient": {"email": TO}}
    return {"type": f"activity.{kind}", "data": {"type": kind, "email": email, **more}}


TEMPORARY: dict[str, Any] = {"delivery-status": {"message": "552 5.2.2 Mailbox full"}}
TOLD: list[tuple[str, Any, str | None]] = [
    (
        "brevo",
        {"event": "hard_bounce", "email": TO, "message-id": "m-1", "reason": "no such user"},
        "bounced",
    ),
    ("brevo", {"event": "soft_bounce", "email": TO, "message-id": "m-1"}, "failed"),
    ("brevo", {"event": "spam", "email": TO, "message-id": "m-1"}, "complained"),
    ("brevo", {"event": "delivered", "email": TO, "message-id": "m-1"}, "delivered"),
    ("brevo", {"event": "click", "email": TO, "message-id": "m-1"}, None),
    ("mailersend", mailersend("hard_bounced", morph={"object": "recipient_bounce"}), "bounced"),
    ("mailersend", mailersend("soft_bounced", morph={"object": "recipient_bounce"}), "failed"),
    ("mailersend", mailersend("spam_complaint", morph={"object": "spam_complaint"}), "complained"),
    ("mailgun", mailgun(severity="permanent", reason="bounce"), "bounced"),
    ("mailgun", mailgun(severity="permanent", reason="bounce", **TEMPORARY), "failed"),
    ("mailgun", mailgun(severity="temporary", reason="generic"), None),  # it tries again
    ("mailgun", mailgun("complained"), "complained"),
    ("mailjet", [{"event": "bounce", "MessageID": 1, "email": TO, "error": "user unknown"}], "bounced"),
    ("mailjet", {"event": "bounce", "MessageID": 1, "email": TO, "error": "quota exceeded"}, "failed"),
    ("mailjet", {"event": "blocked", "MessageID": 1, "email": TO, "error": "preblocked"}, "failed"),
    ("mailjet", {"event": "spam", "MessageID": 1, "email": TO}, "complained"),
    ("mandrill", mandrill("hard_bounce", diag="smtp;550 5.1.1 unknown"), "bounced"),
    ("mandrill", mandrill("hard_bounce"), "bounced"),
    ("mandrill", mandrill("soft_bounce"), "failed"),
    ("mandrill", mandrill("spam"), "complained"),
    ("postmark", {"RecordType": "Bounce", "Type": "HardBounce", "MessageID": "m-1", "Email": TO}, "bounced"),
    ("postmark", {"RecordType": "Bounce", "Type": "SoftBounce", "MessageID": "m-1", "Email": TO}, "failed"),
    (
        "postmark",
        {"RecordType": "SpamComplaint", "Type": "SpamComplaint", "MessageID": "m-1", "Email": TO},
        "complained",
    ),
    (
        "resend",
        resend("email.bounced", bounce={"type": "Permanent", "message": "a hard bounce message"}),
        "bounced",
    ),
    ("resend", resend("email.bounced", bounce={"type": "Transient", "message": "inbox was full"}), "failed"),
    ("resend", resend("email.complained"), "complained"),
    ("sparkpost", sparkpost("bounce", bounce_class="10", raw_reason="550 5.1.1 No such user"), "bounced"),
    ("sparkpost", sparkpost("bounce", bounce_class="22"), "failed"),
    ("sparkpost", sparkpost("spam_complaint"), "complained"),
    ("sparkpost", sparkpost("policy_rejection", bounce_class="25"), "failed"),
]


def report(told: Any, headers: dict[str, str] = BASIC) -> WebhookRequest:
    form = isinstance(told, dict) and "mandrill_events" in told
    body = urlencode(told) if form else json.dumps(told)
    kind = "application/x-www-form-urlencoded" if form else "application/json; charset=utf-8"
    return WebhookRequest(
        headers={**headers, "content-type": kind}, body=body.encode(), secret=SECRET, received_at=NOW
    )


def read(provider: str, told: Any, **more: str) -> list[InboundEvent]:
    return parse(report(told), provider=provider, signing_key="", **more)


def test_every_provider_reports() -> None:
    assert set(VIEWS) == set(HARD) == set(PROVIDERS)
    assert {provider for provider, _, _ in TOLD} == set(PROVIDERS)


@pytest.mark.parametrize(("provider", "told", "state"), TOLD)
def test_a_report_says_what_became_of_its_message(provider: str, told: Any, state: str | None) -> None:
    found = [event for event in read(provider, told) if isinstance(event, Receipt)]
    assert [event.state.value for event in found] == ([state] if state else [])
    assert all(event.provider_id in {"m-1", "1", "<m-1@school.example>"} for event in found)
    assert all(event.event_id == f"receipt:{event.provider_id}:{state}" for event in found)


def test_an_opt_out_at_the_provider_is_an_opt_out_here() -> None:
    told = {"event": "unsubscribe", "email": TO.upper(), "message-id": "m-1", "ts_epoch": 1_700_000_000_000}
    [event] = read("brevo", told)
    assert isinstance(event, ConsentTold)
    assert (event.sender, event.wanted) == (TO, False)


def test_a_bounce_of_the_senders_own_copy_says_nothing_about_the_reader() -> None:
    told = {"event": "hard_bounce", "email": "Archive@School.example", "message-id": "m-1"}
    assert read("brevo", told, copy_to="archive@school.example") == []


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic bm9ib2R5"}, {"authorization": "Bearer x"}])
@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_a_report_without_proof_is_refused(provider: str, headers: dict[str, str]) -> None:
    told = next(told for name, told, _ in TOLD if name == provider)
    for key in ("", "a-signing-key"):
        with pytest.raises(WebhookRefusedError):
            parse(report(told, headers), provider=provider, signing_key=key)


def test_a_signature_of_the_provider_is_proof() -> None:
    key = "whsec_" + base64.b64encode(b"signing").decode()
    told = mailgun("complained")
    told["signature"]["signature"] = hmac.new(b"key", b"1t", hashlib.sha256).hexdigest()
    assert parse(report(told, {}), provider="mailgun", signing_key="key")

    other = report(mailersend("spam_complaint"), {})
    signed = {"signature": hmac.new(b"key", other.body, hashlib.sha256).hexdigest()}
    assert parse(report(mailersend("spam_complaint"), signed), provider="mailersend", signing_key="key")

    body = report(resend("email.complained"), {}).body
    mac = hmac.new(b"signing", b"id-1.1700000000." + body, hashlib.sha256).digest()
    svix = {
        "svix-id": "id-1",
        "svix-timestamp": "1700000000",
        "svix-signature": f"v0,x v1,{base64.b64encode(mac).decode()}",
    }
    assert parse(report(resend("email.complained"), svix), provider="resend", signing_key=key)
    with pytest.raises(WebhookRefusedError):
        parse(report(resend("email.bounced"), svix), provider="resend", signing_key=key)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{}", b'"x"', b"\xff", b'{"event": []}', b"[[]]"])
def test_nonsense_is_refused_or_says_nothing(provider: str, body: bytes) -> None:
    request = WebhookRequest(headers=BASIC, body=body, secret=SECRET, received_at=NOW)
    with suppress(WebhookRefusedError):
        assert [e for e in parse(request, provider=provider, signing_key="") if isinstance(e, Receipt)] == []
