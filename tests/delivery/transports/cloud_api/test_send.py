"""WhatsApp's Cloud API, against a small server that checks every request as Meta's description says."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
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
    AddressLearnt,
    ConsentTold,
    Inbound,
    Known,
    Message,
    OwnLimitsChanged,
    Receipt,
    ReceiptState,
    SessionChanged,
    SlowDownAsked,
    Transport,
    Uploaded,
    WebhookRefusedError,
)
from delivery.transports.cloud_api.limits import FIELDS
from delivery.transports.cloud_api.send import CloudApiTransport
from tests.delivery.transports.contract import HandleContract, TransportContract
from tests.delivery.transports.gateway import AnswerContract, Gateway, RefusedError, Reply, Said, same_secret
from tests.delivery.transports.harness import SECRET, Received, Scenario, photo, picture
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, WEBHOOK_SECRET, Reported, WebhookContract

PHONE_ID = "106540352242922"
ENVELOPE = {
    "messaging_product": frozenset({"whatsapp"}),
    "recipient_type": frozenset({"individual"}),
    "to": re.compile(r"[1-9][0-9]+|.*secret.*"),
}
HANDLE = {"id": str, "caption": Maybe(str)}
PARAMETER = {"type": frozenset({"text"}), "text": re.compile(r"[^\n\t]+")}
CONTENTS: dict[str, Any] = {
    "text": {"body": str, "preview_url": bool},
    "image": HANDLE,
    "video": HANDLE,
    "audio": {"id": str},
    "document": {**HANDLE, "filename": str},
    "template": {
        "name": re.compile(r"[a-z0-9_]+"),
        "language": {
            "policy": frozenset({"deterministic"}),
            "code": re.compile(r"[a-z]{2}(_[A-Z]{2})?"),
        },
        "components": [{"type": frozenset({"body"}), "parameters": [PARAMETER]}],
    },
}


def failure(code: int, status: int = 400, details: str = "Meta says why") -> Reply:
    error = {
        "message": f"(#{code}) Something",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
        "fbtrace_id": "A1",
    }
    return Reply(status=status, body={"error": error})


class Graph(Gateway):
    kind = CloudApiTransport
    address = "+4915112345678"
    refused_address = "+4915100000000"
    answers = {
        Scenario.RATE_LIMITS: failure(130429, 429),
        Scenario.NOT_CONNECTED: failure(133010),
        Scenario.BLOCKED: failure(190, 401),
        Scenario.REJECTS: failure(131026),
        Scenario.REFUSES_FOR_NOW: failure(131000, 500),
        Scenario.BREAKS_AFTER: Reply(status=502, body=b"Bad gateway"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.state = "CONNECTED"
        self.limits: dict[str, str] = {}

    def credentials_on(self, port: int) -> dict[str, str]:
        return {
            "base_url": f"http://127.0.0.1:{port}/v23.0",
            "phone_id": PHONE_ID,
            "token": SECRET,
            "app_secret": WEBHOOK_SECRET,
        }

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "token": f"{SECRET}-but-another"}

    def check_secret(self, request: web.Request) -> None:
        if not same_secret(request.headers.get("Authorization"), f"Bearer {SECRET}"):
            raise RefusedError(self.answers[Scenario.BLOCKED])

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.post("/v23.0/{phone}/messages", self.send),
            web.post("/v23.0/{phone}/media", self.upload),
            web.get("/v23.0/{phone}", self.phone),
        ]

    async def send(self, request: web.Request) -> web.StreamResponse:
        assert request.match_info["phone"] == PHONE_ID
        body = await request.json()
        kind = body.get("type")
        assert kind in CONTENTS, kind
        body = await self.checked(request, {**ENVELOPE, "type": str, kind: CONTENTS[kind]})
        content, to = body[kind], body["to"]
        if "secret" in to:
            raise RefusedError(failure(100, details=f"{to} is not a phone number"))
        words = _words(kind, content)
        if len(words) > (1024 if kind != "text" else 4096):
            raise RefusedError(failure(100, details="The text is too long"))
        if "id" in content and content["id"] not in self.files:
            raise RefusedError(failure(100, details="There is no such media"))
        received = Received(address=f"+{to}", text=words, chars=len(words), media=content.get("id", ""))
        sent = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": to}],
            "messages": [{"id": f"wamid.{len(self.messages)}"}],
        }
        return await self.take(request, received, Reply(body=sent))

    async def upload(self, request: web.Request) -> web.StreamResponse:
        fields, file, content = await self.form(request)
        assert fields == {"messaging_product": "whatsapp", "type": file.content_type}
        assert file.name == "file"
        assert file.filename in {"Fête été.png", "aX-Evil: 1.png"}
        handle = f"44907{len(self.files)}"
        return await self.keep(request, handle, content, Reply(body={"id": handle}))

    async def phone(self, request: web.Request) -> web.StreamResponse:
        self.check(dict(request.query), {"fields": re.compile(r"[a-z_]+(,[a-z_]+)*")}, "query")
        if (asked := request.query["fields"]) in FIELDS:
            if asked not in self.limits:
                return failure(100, details="Tried accessing nonexisting field").response()
            return web.json_response({"id": PHONE_ID, asked: self.limits[asked]})
        return web.json_response({"id": PHONE_ID, "status": self.state, "quality_rating": "GREEN"})


def _words(kind: str, content: dict[str, Any]) -> str:
    if kind == "template":
        return str(content["components"][0]["parameters"][0]["text"])
    return str(content.get("body", content.get("caption", "")))


class TestCloudApi(TransportContract, HandleContract, AnswerContract):
    service = Graph
    table = (
        *(Said(reply=failure(code), means=RateLimited, words="Meta") for code in (4, 80007, 130429, 131016)),
        *(
            Said(reply=failure(code), means=AccountBlocked, words="Meta")
            for code in (0, 10, 190, 200, 368, 131031, 131042, 131048)
        ),
        *(Said(reply=failure(code, 500), means=ServerError, words="Meta") for code in (1, 2, 131000)),
        # This recipient alone: no slower for anybody else.
        Said(reply=failure(131056), means=TryAgain, after=6.0),
        Said(reply=failure(131049), means=TryAgain, after=86_400.0),
        Said(reply=failure(131026), means=Rejected, code="131026", words="cannot be reached"),
        Said(reply=failure(131047), means=Rejected, code="131047", words="enter an approved template"),
        Said(reply=failure(132001), means=Rejected, code="132001", words="no approved template"),
        Said(reply=failure(132018), means=Rejected, code="132018", words="Meta says why"),
        Said(reply=failure(132018, 500), means=Rejected, code="132018", words="Meta says why"),
        Said(reply=failure(131053), means=Rejected, code="131053", words="Meta says why"),
        Said(reply=failure(133010), means=NotConnected),
        # Codes that nobody has heard of are read by their status.
        Said(reply=failure(999, 400), means=Rejected, code="999"),
        Said(reply=failure(999, 403), means=AccountBlocked),
        Said(reply=failure(999, 500), means=Unknown),
        Said(reply=Reply(status=400, body={"error": "no object"}), means=Rejected, code="400"),
        Said(reply=Reply(status=429, body={}, headers={"Retry-After": "9"}), means=RateLimited, after=9.0),
        Said(reply=Reply(body={"messages": []}), means=Unknown, words="cannot be read"),
        Said(reply=Reply(body={"messages": [{"id": "wamid.A"}]}), means=Sent),
    )

    async def test_a_group_is_refused_before_anything_is_asked(
        self, transport: CloudApiTransport, harness: Graph
    ) -> None:
        message = Message(address="120363@g.us", kind="text", text="Hi")
        assert isinstance(await transport.send(message, "k"), Rejected)
        assert harness.asked == []

    @pytest.mark.parametrize(
        ("content_type", "caption", "kind"),
        [
            ("image/jpeg", "", "image"),
            ("image/webp", "", "document"),
            ("video/mp4", "Look", "video"),
            ("audio/mpeg", "", "audio"),
            ("audio/mpeg", "Listen", "document"),  # a caption is lost on sound
            ("application/pdf", "Read", "document"),
        ],
    )
    def test_each_kind_of_file_goes_its_way(
        self, transport: CloudApiTransport, harness: Graph, content_type: str, caption: str, kind: str
    ) -> None:
        message = picture(harness.address, replace(photo(), content_type=content_type), handle="1")
        request = transport.build_message(replace(message, text=caption), "k")
        assert not isinstance(request, Rejected)
        assert f'"type": "{kind}"'.encode() in request.body  # type: ignore[operator]  # bytes, as any JSON

    async def test_a_template_carries_the_words_on_one_line(
        self, harness: Graph, session: aiohttp.ClientSession
    ) -> None:
        credentials = {**harness.credentials(), "template": "reminder_1", "language": "pt_BR"}
        transport = CloudApiTransport(credentials, session)
        outcome = await transport.send(
            Message(address=harness.address, kind="text", text="Bus at nine.\n\n\tBe there!"), "k"
        )
        assert isinstance(outcome, Sent)
        assert harness.messages[0].text == "Bus at nine. Be there!"

    async def test_media_go_without_a_template(self, harness: Graph, session: aiohttp.ClientSession) -> None:
        transport = CloudApiTransport({**harness.credentials(), "template": "reminder_1"}, session)
        uploaded = await transport.upload(photo())
        assert isinstance(uploaded, Uploaded)
        message = picture(harness.address, handle=uploaded.handle)
        assert isinstance(await transport.send(message, "k"), Sent)
        assert harness.messages[0].media == uploaded.handle

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ("CONNECTED", AccountState.WORKING),
            ("FLAGGED", AccountState.WORKING),
            ("DISCONNECTED", AccountState.STOPPED),
            ("BANNED", AccountState.BLOCKED),
        ],
    )
    async def test_its_states(
        self, transport: CloudApiTransport, harness: Graph, told: str, state: AccountState
    ) -> None:
        harness.state = told
        assert await transport.status() is state

    @pytest.mark.parametrize(
        ("limits", "people"),
        [({FIELDS[0]: "TIER_2K"}, 2_000), ({FIELDS[1]: "TIER_250"}, 250), ({}, None)],
    )
    async def test_its_messaging_limit_is_read_by_either_name(
        self, transport: CloudApiTransport, harness: Graph, limits: dict[str, str], people: int | None
    ) -> None:
        harness.limits = limits
        assert (await transport.own_limits()).people_per_24_hours == people


GROUP = "Y2FwaV9ncm91cDoxODA1NTU1MDE3MjoxMjAzNjMyMjI3NzE5NjMwNjcZD"
AT = datetime(2026, 11, 18, 11, 59, tzinfo=UTC)


def report(field: str = "messages", phone_id: str = PHONE_ID, **value: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "15550783881", "phone_number_id": phone_id}
    change = {"field": field, "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}
    return {"object": "whatsapp_business_account", "entry": [{"id": "419", "changes": [change]}]}


def written(told: str, **message: Any) -> dict[str, Any]:
    return {"from": "4915112345678", "id": told, "timestamp": str(int(AT.timestamp())), **message}


def inbound(told: str, text: str) -> Inbound:
    person = "+4915112345678"
    return Inbound(event_id=f"message:{told}", provider_id=told, sender=person, chat=person, text=text, at=AT)


def one(**message: Any) -> dict[str, Any]:
    """A report of one message."""
    return report(messages=[written("m1", **message)])


def preference(value: str) -> dict[str, Any]:
    return {
        "wa_id": "4915112345678",
        "detail": f"User requested to {value} marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": int(AT.timestamp()),
    }


def consent(event_id: str, *, wanted: bool) -> ConsentTold:
    return ConsentTold(event_id=event_id, sender="+4915112345678", wanted=wanted, at=AT)


def status(told: str, **more: Any) -> dict[str, Any]:
    return {"id": "wamid.1", "status": told, "timestamp": str(int(AT.timestamp())), **more}


def receipt(state: ReceiptState, reason: str = "") -> Receipt:
    return Receipt(
        event_id=f"receipt:wamid.1:{state}", provider_id="wamid.1", state=state, at=AT, reason=reason
    )


def failed(code: int, title: str = "") -> dict[str, Any]:
    return status("failed", errors=[{"code": code, "title": title}])


def of(message: str, told: dict[str, Any], **more: Any) -> dict[str, Any]:
    return told | {"id": message} | more


def told(
    message: str, state: ReceiptState = ReceiptState.FAILED, *, reason: str = "", chat: str = ""
) -> Receipt:
    return replace(
        receipt(state, reason), event_id=f"receipt:{message}:{state}", provider_id=message, chat=chat
    )


class TestCloudApiWebhooks(WebhookContract):
    service = Graph
    reports = (
        Reported(
            body=report(messages=[written("m1", type="text", text={"body": "Yes"})]),
            events=[inbound("m1", "Yes")],
        ),
        Reported(
            body=report(
                messages=[
                    written("m2", type="button", button={"text": "Stop"}),
                    written("m3", type="interactive", interactive={"list_reply": {"title": "Nine"}}),
                    written("m4", type="image", image={"caption": "Here"}),
                    written("m5", type="audio", audio={"id": "1"}),
                    written("m6", type="reaction", reaction={"emoji": "👍"}),
                ],
                statuses=[status("sent")],
            ),
            events=[
                inbound("m2", "Stop"),
                inbound("m3", "Nine"),
                inbound("m4", "Here"),
                inbound("m5", ""),
                receipt(ReceiptState.SENT),
            ],
        ),
        Reported(body=report(statuses=[status("delivered")]), events=[receipt(ReceiptState.DELIVERED)]),
        Reported(body=report(statuses=[status("read")]), events=[receipt(ReceiptState.READ)]),
        Reported(
            body=report(statuses=[status("failed", errors=[{"code": 131049, "title": "Not now"}])]),
            events=[receipt(ReceiptState.FAILED, "Not now (131049)")],
        ),
        Reported(body=report(statuses=[status("deleted")]), events=[]),
        # Without the number of a person, their id says who they are; the ledger knows the number.
        Reported(
            body=report(statuses=[of("wamid.3", status("delivered", recipient_user_id="DE.77"))]),
            events=[told("wamid.3", ReceiptState.DELIVERED, chat="DE.77")],
        ),
        Reported(
            body=report(statuses=[of("wamid.4", failed(131050), parent_recipient_user_id="DE.ENT.9")]),
            events=[
                replace(consent("consent:wamid.4", wanted=False), sender="DE.ENT.9"),
                told(
                    "wamid.4",
                    reason="this person does not want marketing messages from you (131050)",
                    chat="DE.ENT.9",
                ),
            ],
        ),
        # What a code does to the account in an answer, it also does in a status.
        Reported(
            body=report(statuses=[of("wamid.5", failed(131042, "Payment"))]),
            events=[
                told("wamid.5", reason="Payment (131042)"),
                SessionChanged(
                    event_id="account:131042:wamid.5",
                    state=AccountState.BLOCKED,
                    at=AT,
                    reason="Payment (131042)",
                ),
            ],
        ),
        Reported(
            body=report(statuses=[of("wamid.6", failed(131045, "Not registered"))]),
            events=[
                told("wamid.6", reason="Not registered (131045)"),
                SessionChanged(
                    event_id="account:131045:wamid.6",
                    state=AccountState.STOPPED,
                    at=AT,
                    reason="Not registered (131045)",
                ),
            ],
        ),
        Reported(
            body=report(statuses=[of("wamid.7", failed(130429, "Too fast"))]),
            events=[
                told("wamid.7", reason="Too fast (130429)"),
                SlowDownAsked(event_id=f"slow:130429:{AT:%Y%m%dT%H%M}", at=AT, reason="Too fast (130429)"),
            ],
        ),
        Reported(
            body=report("account_update", event="DISABLED_UPDATE"),
            events=[
                SessionChanged(
                    event_id="account:DISABLED_UPDATE:20261118T120000",
                    state=AccountState.BLOCKED,
                    at=NOW,
                    reason="Meta restricted the account (DISABLED_UPDATE)",
                )
            ],
        ),
        Reported(body=report("account_update", event="VERIFIED_ACCOUNT"), events=[]),
        Reported(
            body=report("business_capability_update", max_daily_conversations_per_business=2000),
            events=[OwnLimitsChanged(event_id="limits:20261118T120000", at=NOW)],
        ),
        Reported(
            body=report(messages=[written("m7", type="text", text={"body": "Yes"}, group_id=GROUP)]),
            events=[replace(inbound("m7", "Yes"), chat=GROUP)],
        ),
        Reported(
            body=report(
                messages=[
                    written(
                        "m8", type="button", button={"payload": "Stop promotions", "text": "Stop promotions"}
                    )
                ]
            ),
            events=[consent("consent:m8", wanted=False), inbound("m8", "Stop promotions")],
        ),
        Reported(
            body=report("user_preferences", user_preferences=[preference("stop")]),
            events=[consent("preference:+4915112345678:False:20261118T115900", wanted=False)],
        ),
        Reported(
            body=report("user_preferences", user_preferences=[preference("resume"), preference("think")]),
            events=[consent("preference:+4915112345678:True:20261118T115900", wanted=True)],
        ),
        Reported(  # as a system message, which some numbers get instead
            body=report(
                messages=[
                    written(
                        "m9", type="system", system={"type": "user_preference_changed", "marketing": "stop"}
                    )
                ]
            ),
            events=[consent("consent:m9", wanted=False)],
        ),
        Reported(
            body=report(
                statuses=[
                    status("failed", errors=[{"code": 131050}], recipient_id="4915112345678")
                    | {"id": "wamid.2"}
                ]
            ),
            events=[
                consent("consent:wamid.2", wanted=False),
                replace(
                    receipt(
                        ReceiptState.FAILED, "this person does not want marketing messages from you (131050)"
                    ),
                    event_id="receipt:wamid.2:failed",
                    provider_id="wamid.2",
                ),
            ],
        ),
        Reported(
            body=report(
                contacts=[{"wa_id": "4915112345678", "user_id": "DE.77"}, {"user_id": "DE.78"}],
                messages=[
                    {
                        "from_user_id": "DE.78",
                        "id": "m10",
                        "timestamp": "1",
                        "type": "text",
                        "text": {"body": "Yes"},
                    }
                ],
            ),
            events=[
                AddressLearnt(
                    event_id="address:DE.77:+4915112345678",
                    known=Known(hidden="DE.77", address="+4915112345678"),
                ),
                replace(
                    inbound("m10", "Yes"),
                    sender="DE.78",
                    chat="DE.78",
                    at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
                ),
            ],
        ),
    )
    no_replies = {
        "a reaction": one(type="reaction", reaction={"emoji": "👍", "message_id": "wamid.1"}),
        "a reaction taken back": one(type="reaction", reaction={"message_id": "wamid.1"}),
        "an edit": one(
            type="edit",
            edit={"original_message_id": "m0", "message": {"type": "text", "text": {"body": "STOP"}}},
        ),
        "a deletion": one(type="revoke", revoke={"original_message_id": "m0"}),
        "what Meta cannot pass on": one(
            type="unsupported", errors=[{"code": 131051, "title": "Message type unknown"}]
        ),
        "a changed number": one(
            type="system",
            system={"type": "user_changed_number", "body": "User A changed", "new_wa_id": "49151"},
        ),
        "an opened chat": one(type="request_welcome"),
        "what the business wrote in its app": report(
            "smb_message_echoes",
            message_echoes=[
                {
                    "from": "15550783881",
                    "to": "4915112345678",
                    "id": "m1",
                    "type": "text",
                    "text": {"body": "Hi"},
                }
            ],
        ),
    }
    words = {
        "a text": one(type="text", text={"body": "STOP"}),
        "a button of a template": one(type="button", button={"payload": "p1", "text": "STOP"}),
        "a button": one(
            type="interactive",
            interactive={"type": "button_reply", "button_reply": {"id": "b", "title": "STOP"}},
        ),
        "a list": one(
            type="interactive",
            interactive={
                "type": "list_reply",
                "list_reply": {"id": "r", "title": "STOP", "description": "No more"},
            },
        ),
        "a form": one(
            type="interactive",
            interactive={
                "type": "nfm_reply",
                "nfm_reply": {"name": "flow", "body": "STOP", "response_json": '{"flow_token": "x"}'},
            },
        ),
        "a picture": one(type="image", image={"id": "1", "caption": "STOP"}),
        "a film": one(type="video", video={"id": "1", "caption": "STOP"}),
        "a document": one(type="document", document={"id": "1", "caption": "STOP", "filename": "a.pdf"}),
        "an order": one(type="order", order={"catalog_id": "1", "text": "STOP"}),
    }
    for_others = report(phone_id="999", messages=[written("m1", type="text", text={"body": "Yes"})])

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        return {
            "x-hub-signature-256": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
        }

    def test_without_an_app_secret_nothing_is_believed(self, harness: Graph) -> None:
        reader = CloudApiTransport({**harness.credentials(), "app_secret": ""}, None)
        request = self.request(self.reports[0].body)
        empty = self.headers(request.body, "", NOW)
        for headers in (request.headers, empty):
            with pytest.raises(WebhookRefusedError):
                reader.parse_webhook(replace(request, headers=headers))

    def test_a_restriction_that_is_told_again_another_day_is_the_same_event(self, reader: Transport) -> None:
        body = report("account_update", event="DISABLED_UPDATE")
        body["entry"][0]["time"] = int(NOW.timestamp())
        request = self.request(body)
        later = replace(request, received_at=NOW + timedelta(days=3))
        assert reader.parse_webhook(later) == reader.parse_webhook(request) != []

    def test_meta_hears_its_own_challenge_if_it_knows_the_word(self, reader: Transport) -> None:
        query = {"hub.mode": "subscribe", "hub.verify_token": "word", "hub.challenge": "1158201444"}
        assert reader.webhook_challenge(query, "word") == "1158201444"

    @pytest.mark.parametrize(
        ("change", "secret"),
        [
            ({"hub.verify_token": "guess"}, "word"),
            ({"hub.mode": "unsubscribe"}, "word"),
            ({"hub.verify_token": ""}, ""),
        ],
    )
    def test_a_challenge_of_somebody_else_is_refused(
        self, reader: Transport, change: dict[str, str], secret: str
    ) -> None:
        query = {"hub.mode": "subscribe", "hub.verify_token": "word", "hub.challenge": "1", **change}
        with pytest.raises(WebhookRefusedError):
            reader.webhook_challenge(query, secret)
