"""Unipile, against a small server that checks every request as its published description says."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
)
from delivery.transports.base import (
    AccountState,
    Inbound,
    Message,
    Receipt,
    ReceiptState,
    SessionChanged,
    Transport,
    Webhook,
    WebhookRefusedError,
)
from delivery.transports.http.exchange import open_session
from delivery.transports.unipile.send import UnipileTransport
from tests.delivery.transports.contract import GroupContract, InlineMediaContract, TransportContract
from tests.delivery.transports.gateway import AnswerContract, Gateway, RefusedError, Reply, Said, same_secret
from tests.delivery.transports.harness import SECRET, Received, Scenario, picture
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, Reported, WebhookContract

ACCOUNT = "kzAxdybMQ7ipVxK1U6kwZw"
ANNA = "ACoAAAcDMMQBODyLwZrRcgYhrkCafURGqva0U4E"
CHAT = {
    "account_id": re.compile(ACCOUNT),
    "attendees_ids": re.compile(r"A[CDE][\w-]+"),
    "text": str,
    "subject": Maybe(str),
    "linkedin[api]": Maybe(frozenset({"classic"})),
    "linkedin[inmail]": Maybe(frozenset({"true"})),
}
INVITATION = {
    "account_id": re.compile(ACCOUNT),
    "provider_id": re.compile(r"A[CDE][\w-]+"),
    "message": Maybe(re.compile(r"(?s).{1,300}")),
}
EMAIL = {"account_id": re.compile(ACCOUNT), "to": str, "subject": str, "body": str}
WEBHOOK = {
    "request_url": re.compile("https://.*"),
    "name": str,
    "source": frozenset({"messaging", "email", "account_status"}),
    "account_ids": [re.compile(ACCOUNT)],
    "format": frozenset({"json"}),
    "headers": [{"key": str, "value": str}],
    "events": Maybe([str]),
}

MAIL = {
    "account_id": ACCOUNT,
    "event": "mail_received",
    "email_id": "email-1",
    "date": "2026-11-18T11:00:00Z",
    "from_attendee": {"identifier": "Anna@Example.com", "display_name": "Anna"},
    "subject": "Re: Hello",
    "body": "<p>Stop</p>",
    "body_plain": "Stop\n\nOn Wed, 18 Nov 2026, School wrote:\n> Hello",
}
MAILED = Inbound(
    event_id="email-1",
    provider_id="email-1",
    sender="anna@example.com",
    chat="anna@example.com",
    text="Stop",
    at=datetime(2026, 11, 18, 11, 0, tzinfo=UTC),
)


def mailed(email_id: str) -> dict[str, Any]:
    return {**MAIL, "email_id": email_id}


def ids(email_id: str) -> dict[str, Any]:
    return {"event_id": email_id, "provider_id": email_id}


def failure(status: int, slug: str, detail: str = "It says why") -> Reply:
    return Reply(
        status=status,
        body={"title": "An error", "type": f"errors/{slug}", "status": status, "detail": detail},
    )


class Unipile(Gateway):
    kind = UnipileTransport
    address = ANNA
    refused_address = "ACoAAAcDMMQBODyLwZrRcgYhrkCafURGqva0000"
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}
    answers = {
        Scenario.RATE_LIMITS: failure(429, "too_many_requests"),
        Scenario.NOT_CONNECTED: failure(503, "no_client_session"),
        Scenario.BLOCKED: failure(401, "disconnected_account"),
        Scenario.REJECTS: failure(422, "invalid_recipient"),
        Scenario.BREAKS_AFTER: failure(500, "provider_error"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.sources = [{"id": f"{ACCOUNT}_MESSAGING", "status": "OK"}]
        self.relations = [
            {
                "member_id": f"ACoAAAcDMMQBODyLwZrRcgYhrkCa{n:04}",
                "first_name": "Anna",
                "last_name": f"Lee {n}",
            }
            for n in range(3)
        ]
        self.webhooks: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.knows_names = True

    def credentials_on(self, port: int) -> dict[str, str]:
        return {"base_url": f"http://127.0.0.1:{port}", "api_key": SECRET, "account_id": ACCOUNT}

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "api_key": f"{SECRET}-but-another"}

    def check_secret(self, request: web.Request) -> None:
        told = request.headers.get("X-API-KEY")
        if not same_secret(told, SECRET):
            raise RefusedError(failure(401, "missing_credentials", f"{told} is wrong"))

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.post("/api/v1/chats", self.chat),
            web.post("/api/v1/users/invite", self.invite),
            web.post("/api/v1/emails", self.email),
            web.get("/api/v1/accounts/{id}", self.show_account),
            web.get("/api/v1/users/relations", self.list_relations),
            web.get("/api/v1/users/{identifier}", self.show_user),
            web.get("/api/v1/webhooks", self.list_webhooks),
            web.post("/api/v1/webhooks", self.make_webhook),
            web.delete("/api/v1/webhooks/{id}", self.drop_webhook),
        ]

    async def chat(self, request: web.Request) -> web.StreamResponse:
        fields, filename, content = await self._fields(request)
        self.check(fields, CHAT)
        self.told.append(fields)
        received = Received(
            address=fields["attendees_ids"],
            text=fields["text"],
            chars=len(fields["text"]),
            media=hashlib.sha256(content).hexdigest() if filename else "",
            filename=filename,
        )
        sent = {"object": "ChatStarted", "chat_id": "chat-1", "message_id": f"message-{len(self.messages)}"}
        return await self.take(request, received, Reply(status=201, body=sent))

    async def invite(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, INVITATION)
        self.told.append(body)
        note = body.get("message", "")
        received = Received(address=body["provider_id"], text=note, chars=len(note))
        return await self.take(
            request, received, Reply(body={"object": "UserInvitationSent", "invitation_id": "invitation-1"})
        )

    async def email(self, request: web.Request) -> web.StreamResponse:
        fields, filename, _ = await self._fields(request)
        self.check(fields, EMAIL)
        self.told.append(fields)
        [to] = json.loads(fields["to"])
        self.check(to, {"identifier": str}, "to")
        received = Received(address=to["identifier"], text=fields["body"], chars=0, filename=filename)
        sent = Reply(status=201, body={"object": "EmailSent", "tracking_id": "tracking-1"})
        return await self.take(request, received, sent)

    async def show_account(self, request: web.Request) -> web.StreamResponse:
        assert request.match_info["id"] == ACCOUNT
        return web.json_response({"object": "Account", "id": ACCOUNT, "sources": self.sources})

    async def list_relations(self, request: web.Request) -> web.StreamResponse:
        query = {"account_id": re.compile(ACCOUNT), "limit": re.compile(r"\d+"), "cursor": Maybe(str)}
        self.check(dict(request.query), query, "query")
        first = int(request.query.get("cursor", "0"))
        rows = self.relations[first : first + 2]
        more = str(first + 2) if first + 2 < len(self.relations) else None
        return web.json_response({"object": "UserRelationsList", "items": rows, "cursor": more})

    async def show_user(self, request: web.Request) -> web.StreamResponse:
        self.check(dict(request.query), {"account_id": re.compile(ACCOUNT)}, "query")
        if not self.knows_names:
            raise RefusedError(failure(500, "unexpected_error"))
        if request.match_info["identifier"] != "anna-lee":
            told = request.match_info["identifier"]
            raise RefusedError(failure(404, "resource_not_found", f"{told} is nobody"))
        return web.json_response({"object": "UserProfile", "provider_id": ANNA})

    async def list_webhooks(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "WebhookList", "items": self.webhooks, "cursor": None})

    async def make_webhook(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, WEBHOOK)
        self.webhooks.append({**body, "id": f"webhook-{len(self.webhooks)}"})
        return web.json_response({"object": "WebhookCreated", "webhook_id": "w"}, status=201)

    async def drop_webhook(self, request: web.Request) -> web.StreamResponse:
        self.webhooks = [row for row in self.webhooks if row["id"] != request.match_info["id"]]
        return web.json_response({"object": "WebhookDeleted"})

    async def _fields(self, request: web.Request) -> tuple[dict[str, str], str, bytes]:
        assert request.content_type == "multipart/form-data"
        form = await request.post()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        files = {name: value for name, value in form.items() if isinstance(value, web.FileField)}
        assert set(files) <= {"attachments"}
        for file in files.values():
            with file.file:
                return fields, file.filename, file.file.read()
        return fields, "", b""


class TestUnipile(TransportContract, InlineMediaContract, GroupContract, AnswerContract):
    service = Unipile
    table = (
        Said(
            reply=failure(422, "cannot_resend_yet"),
            means=TryAgain,
            after=86_400.0,
            words="another invitation",
        ),
        Said(
            reply=failure(422, "limit_exceeded"), means=RateLimited, after=86_400.0, words="no more of this"
        ),
        Said(reply=failure(422, "already_invited_recently"), means=Sent),
        Said(reply=failure(422, "already_connected"), means=Sent),
        Said(
            reply=failure(422, "insufficient_credits"),
            means=RateLimited,
            after=86_400.0,
            words="credits",
        ),
        Said(reply=failure(422, "invalid_recipient"), means=Rejected, code="invalid_recipient"),
        Said(reply=failure(503, "no_client_session"), means=NotConnected),
        Said(reply=failure(422, "blocked_recipient"), means=Rejected, code="blocked_recipient"),
        Said(
            reply=failure(422, "no_connection_with_recipient"),
            means=Rejected,
            code="no_connection_with_recipient",
        ),
        Said(reply=failure(422, "invalid_account"), means=AccountBlocked),
        Said(reply=failure(422, "provider_unreachable"), means=NotConnected),
        Said(reply=failure(403, "account_restricted"), means=AccountBlocked, words="It says why"),
        Said(
            reply=failure(403, "resource_access_restricted"),
            means=Rejected,
            code="resource_access_restricted",
        ),
        Said(reply=failure(401, "expired_credentials"), means=AccountBlocked),
        Said(reply=failure(400, "too_many_characters"), means=Rejected, code="too_many_characters"),
        Said(reply=failure(404, "resource_not_found"), means=Rejected, code="resource_not_found"),
        Said(reply=failure(429, "too_many_requests"), means=RateLimited),
        Said(reply=failure(500, "unexpected_error"), means=Unknown),
        Said(reply=failure(501, "feature_not_implemented"), means=Rejected, code="feature_not_implemented"),
        Said(reply=failure(503, "network_down"), means=NotConnected),
        Said(reply=failure(504, "request_timeout"), means=Unknown),
    )

    @pytest.mark.parametrize(
        ("status", "state"),
        [
            ("OK", AccountState.WORKING),
            ("CONNECTING", AccountState.STARTING),
            ("CREDENTIALS", AccountState.BLOCKED),
            ("SOMETHING_NEW", AccountState.STOPPED),
        ],
    )
    async def test_what_it_says_about_the_account(
        self, transport: UnipileTransport, harness: Unipile, status: str, state: AccountState
    ) -> None:
        harness.sources.append({"id": "another", "status": status})
        assert await transport.status() is state

    async def test_relations_come_page_by_page(self, transport: UnipileTransport, harness: Unipile) -> None:
        assert len([contact async for contact in transport.recipients()]) == len(harness.relations)


class TestActions:
    @pytest.fixture
    async def session(self) -> Any:
        async with open_session() as session:
            yield session

    @pytest.fixture
    async def unipile(self) -> Any:
        async with Unipile() as unipile:
            yield unipile

    @pytest.fixture
    def transport(self, unipile: Unipile, session: aiohttp.ClientSession) -> UnipileTransport:
        return UnipileTransport(unipile.credentials(), session)

    async def test_an_invitation_has_a_note(self, unipile: Unipile, transport: UnipileTransport) -> None:
        message = Message(address=ANNA, kind="text", text="n" * 300, action="connection_request")
        assert await transport.send(message, "k") == Sent(provider_id="invitation-1")
        assert unipile.told == [{"account_id": ACCOUNT, "provider_id": ANNA, "message": "n" * 300}]

    async def test_an_invitation_needs_no_note(self, unipile: Unipile, transport: UnipileTransport) -> None:
        message = Message(address=ANNA, kind="text", text=" ", action="connection_request")
        assert isinstance(await transport.send(message, "k"), Sent)
        assert unipile.told == [{"account_id": ACCOUNT, "provider_id": ANNA}]

    async def test_a_note_that_is_too_long_is_not_sent(
        self, unipile: Unipile, transport: UnipileTransport
    ) -> None:
        message = Message(address=ANNA, kind="text", text="n" * 301, action="connection_request")
        outcome = await transport.send(message, "k")
        assert isinstance(outcome, Rejected)
        assert (outcome.code, "301" in outcome.reason) == ("too_many_characters", True)
        with_file = replace(picture(ANNA), action="connection_request")
        assert isinstance(await transport.send(with_file, "k"), Rejected)
        assert unipile.asked == []

    async def test_an_inmail_says_that_it_is_one(self, unipile: Unipile, transport: UnipileTransport) -> None:
        message = Message(address=ANNA, kind="text", text="Hello", subject="A question", action="inmail")
        assert isinstance(await transport.send(message, "k"), Sent)
        [told] = unipile.told
        assert (told["linkedin[inmail]"], told["subject"]) == ("true", "A question")

    async def test_an_email_is_html_with_a_link_to_unsubscribe(
        self, unipile: Unipile, transport: UnipileTransport
    ) -> None:
        message = Message(
            address="anna@example.com",
            kind="text",
            text="Dear <Anna>",
            subject="Grüße",
            action="email",
            unsubscribe_url="https://paceline.example/u",
        )
        assert await transport.send(message, "k") == Sent(provider_id="tracking-1")
        [told] = unipile.told
        assert told["subject"] == "Grüße"
        assert "Dear &lt;Anna&gt;" in told["body"]
        assert 'href="https://paceline.example/u"' in told["body"]

    async def test_a_profile_by_its_name_is_looked_up_once(
        self, unipile: Unipile, transport: UnipileTransport
    ) -> None:
        for number in range(2):
            message = Message(address="anna-lee", kind="text", text="Hello")
            assert isinstance(await transport.send(message, f"k{number}"), Sent)
        assert [received.address for received in unipile.received()] == [ANNA, ANNA]
        assert len([path for _, path in unipile.asked if "/users/anna-lee" in path]) == 1

    async def test_a_name_that_nobody_has_is_refused(self, transport: UnipileTransport) -> None:
        outcome = await transport.send(Message(address="nobody", kind="text", text="Hello"), "k")
        assert isinstance(outcome, Rejected)

    async def test_while_a_name_cannot_be_looked_up_nothing_left(
        self, unipile: Unipile, transport: UnipileTransport
    ) -> None:
        unipile.knows_names = False
        outcome = await transport.send(Message(address="anna-lee", kind="text", text="Hello"), "k")
        assert isinstance(outcome, ServerError)
        assert unipile.received() == []

    async def test_it_is_told_where_to_report_once(
        self, unipile: Unipile, transport: UnipileTransport
    ) -> None:
        old = Webhook(url="https://old.example/hooks/1", secret="s" * 32)
        new = Webhook(url="https://new.example/hooks/1", secret="s" * 32)
        unipile.webhooks.append(
            {"id": "theirs", "name": "Somebody else's", "request_url": "https://x.example"}
        )
        for webhook in (old, new, new):
            assert await transport.connect(webhook) is AccountState.WORKING
        ours = [row for row in unipile.webhooks if row["id"] != "theirs"]
        assert {row["request_url"] for row in ours} == {new.url}
        assert sorted(row["source"] for row in ours) == ["account_status", "email", "messaging"]
        assert {"key": "Unipile-Auth", "value": new.secret} in ours[0]["headers"]
        assert len(unipile.webhooks) == 4


def message(**more: Any) -> dict[str, Any]:
    return {
        "account_id": ACCOUNT,
        "account_type": "LINKEDIN",
        "account_info": {"user_id": "ACoAAOurselves00000000000"},
        "event": "message_received",
        "chat_id": "chat-1",
        "message_id": "message-1",
        "message": "Yes, gladly!",
        "timestamp": "2026-11-18T11:59:00.000Z",
        "sender": {"attendee_provider_id": ANNA, "attendee_name": "Anna Lee"},
        **more,
    }


class TestReports(WebhookContract):
    service = Unipile
    signs_body = False
    reports = (
        Reported(
            body=message(),
            events=[
                Inbound(
                    event_id="message-1",
                    provider_id="message-1",
                    sender=ANNA,
                    chat=ANNA,
                    text="Yes, gladly!",
                    at=datetime(2026, 11, 18, 11, 59, tzinfo=UTC),
                )
            ],
        ),
        Reported(
            body=message(message_id="ours", sender={"attendee_provider_id": "ACoAAOurselves00000000000"}),
            events=[],
        ),
        Reported(
            body=message(event="message_read", message_id="message-2"),
            events=[
                Receipt(
                    event_id="message-2:read",
                    provider_id="message-2",
                    state=ReceiptState.READ,
                    at=datetime(2026, 11, 18, 11, 59, tzinfo=UTC),
                )
            ],
        ),
        Reported(body=message(event="message_reaction"), events=[]),
        Reported(body=MAIL, events=[MAILED]),
        Reported(
            body={
                **mailed("email-2"),
                "subject": "Unsubscribe",
                "body": "<p>Sent from my iPhone</p>",
                "body_plain": "",
            },
            events=[replace(MAILED, **ids("email-2"), text="Unsubscribe", subject="Unsubscribe")],
        ),
        Reported(
            body={
                **mailed("email-3"),
                "subject": "Fwd: Stop",
                "body_plain": "",
                "body": "<blockquote>Stop</blockquote>",
            },
            events=[replace(MAILED, **ids("email-3"), text="")],
        ),
        Reported(
            body={**mailed("email-4"), "body_plain": "", "body": "<p>Stop</p><blockquote>Hello</blockquote>"},
            events=[replace(MAILED, **ids("email-4"))],
        ),
        Reported(body={**MAIL, "subject": "Automatic reply: Hello"}, events=[]),
        Reported(body={**MAIL, "headers": [{"name": "Auto-Submitted", "value": "auto-replied"}]}, events=[]),
        Reported(
            body={
                **MAIL,
                "headers": [
                    {
                        "name": "Authentication-Results",
                        "value": "mx.example; dmarc=fail header.from=example.com",
                    }
                ],
            },
            events=[],
        ),
        Reported(
            body={
                "AccountStatus": {"account_id": ACCOUNT, "account_type": "LINKEDIN", "message": "CREDENTIALS"}
            },
            events=[
                SessionChanged(
                    event_id="CREDENTIALS:20261118T1200",
                    state=AccountState.BLOCKED,
                    at=NOW,
                    reason="Unipile says CREDENTIALS",
                )
            ],
        ),
    )
    for_others = message(account_id="somebody-else")
    no_replies = {
        "our own": message(is_sender=1),
        "our own, as true": message(is_sender=True),
        "our own, by its id": message(sender={"attendee_provider_id": "ACoAAOurselves00000000000"}),
        "an event of a chat": message(is_event=1),
        "a reaction": message(event="message_reaction"),
        "an edit": message(event="message_edited"),
    }
    words = {
        "a message": message(message="STOP", is_sender=0, is_event=0),
        "a message without flags": message(message="STOP"),
    }

    def test_a_message_in_a_chat_of_several_is_not_its_senders_answer(self, reader: Transport) -> None:
        [event] = reader.parse_webhook(self.request(message(is_group=True)))
        assert isinstance(event, Inbound)
        assert (event.chat, event.sender) == ("chat-1", ANNA)

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        return {"unipile-auth": secret}

    def test_without_a_secret_of_ours_nothing_is_believed(self) -> None:
        transport = UnipileTransport(
            {"base_url": "https://x.example", "api_key": "k", "account_id": ACCOUNT}, None
        )
        with pytest.raises(WebhookRefusedError):
            transport.parse_webhook(replace(self.request(message()), secret="", headers={"unipile-auth": ""}))
