"""WAHA, against a small server that checks every request as WAHA's description says."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    Unknown,
    Unreachable,
)
from delivery.transports.base import (
    AccountState,
    AddressLearnt,
    Inbound,
    Known,
    Message,
    OwnLimits,
    Receipt,
    ReceiptState,
    SessionChanged,
    Transport,
    UnansweredError,
    Webhook,
    WebhookRefusedError,
)
from delivery.transports.waha.send import WahaTransport
from tests.delivery.transports.contract import (
    GroupContract,
    InlineMediaContract,
    MediaAddressContract,
    TransportContract,
)
from tests.delivery.transports.gateway import (
    AnswerContract,
    Gateway,
    RefusedError,
    Reply,
    Said,
    fetched,
    same_secret,
)
from tests.delivery.transports.harness import PICTURE, SECRET, Received, Scenario, photo, picture
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, WEBHOOK_SECRET, Reported, WebhookContract
from tests.delivery.transports.whatsapp.test_content import NOTHING, WORDS

CHAT = re.compile(r".+@(c\.us|g\.us|lid|newsletter)|.*secret.*")
FILE = {"mimetype": str, "filename": str, "data": str}
TEXT = {"session": str, "chatId": CHAT, "text": str}
REMOTE_FILE = {"mimetype": str, "filename": str, "url": str}
MEDIA = {"session": str, "chatId": CHAT, "caption": str, "file": FILE}
VIDEO = {**MEDIA, "asNote": bool}
WEBHOOK = {
    "url": re.compile(r"https?://.+"),
    "events": [frozenset({"message", "message.ack", "session.status"})],
    "hmac": {"key": str},
    "retries": {
        "policy": frozenset({"linear", "exponential", "constant"}),
        "delaySeconds": int,
        "attempts": int,
    },
}
CONFIG = {"webhooks": Maybe([WEBHOOK]), "proxy": Maybe(dict)}
NOT_WORKING = {
    "error": "Session status is not as expected. Try again later or restart the session",
    "session": "default",
    "status": "SCAN_QR_CODE",
    "expected": ["WORKING"],
}


class Waha(Gateway):
    kind = WahaTransport
    address = "120363000000000001@g.us"
    refused_address = "+4915100000000"
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}
    longest_wait = 30.0
    answers = {
        Scenario.RATE_LIMITS: Reply(status=429, body={"message": "Slow down"}, headers={"Retry-After": "30"}),
        Scenario.NOT_CONNECTED: Reply(status=422, body=NOT_WORKING),
        Scenario.BLOCKED: Reply(status=401, body={"message": "Unauthorized", "statusCode": 401}),
        Scenario.REJECTS: Reply(
            status=400, body={"statusCode": 400, "message": ["chatId is wrong"], "error": "Bad Request"}
        ),
        Scenario.BREAKS_AFTER: Reply(
            status=500, body={"statusCode": 500, "exception": {"message": "Evaluation failed"}}
        ),
    }

    def __init__(self) -> None:
        super().__init__()
        self.state: str | None = "WORKING"  # None: the session does not exist
        self.config: dict[str, Any] = {}
        self.groups: list[Any] = [{"id": f"12036300{n:04}@g.us", "subject": f"Group {n}"} for n in range(12)]
        self.pages = True
        self.code: dict[str, str] = {"value": "2@code"}
        self.lids: dict[str, str | None] = {}
        self.shown: list[tuple[str, str]] = []
        self.refuses_seen = False
        self.limits: dict[str, Any] = {}

    def credentials_on(self, port: int) -> dict[str, str]:
        return {"base_url": f"http://127.0.0.1:{port}", "api_key": SECRET, "session": "default"}

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "api_key": f"{SECRET}-but-another"}

    def check_secret(self, request: web.Request) -> None:
        if not same_secret(request.headers.get("X-Api-Key"), SECRET):
            raise RefusedError(self.answers[Scenario.BLOCKED])

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.post("/api/sendText", self.send_text),
            web.post("/api/{method:sendImage|sendFile|sendVideo}", self.send_file),
            web.get("/api/sessions/{session}", self.session),
            web.post("/api/sessions", self.create),
            web.put("/api/sessions/{session}", self.update),
            web.post("/api/sessions/{session}/{verb:restart|logout}", self.move),
            web.get("/api/sessions/{session}/{limit:capping|timelock}", self.tell_limit),
            web.get("/api/{session}/auth/qr", self.qr),
            web.post("/api/{session}/auth/request-code", self.request_code),
            web.get("/api/{session}/groups", self.list_groups),
            web.get("/api/{session}/lids/{lid}", self.show_lid),
            web.get("/api/contacts/check-exists", self.check_exists),
            web.post("/api/{verb:sendSeen|startTyping|stopTyping}", self.show),
        ]

    async def tell_limit(self, request: web.Request) -> web.StreamResponse:
        self.check_secret(request)
        limit = request.match_info["limit"]
        if limit not in self.limits:
            return web.json_response({"message": f"Cannot GET {request.path}"}, status=404)
        if self.limits[limit] == "not supported":
            return web.json_response({"message": "not supported by the engine"}, status=501)
        return web.json_response(self.limits[limit])

    async def send_text(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, TEXT)
        return await self.deliver(request, body, text=body["text"])

    async def send_file(self, request: web.Request) -> web.StreamResponse:
        shape = VIDEO if request.match_info["method"] == "sendVideo" else MEDIA
        if "url" in (await request.json())["file"]:
            shape = {**shape, "file": REMOTE_FILE}
        body = await self.checked(request, shape)
        expected = {"image": "sendImage", "video": "sendVideo"}.get(
            body["file"]["mimetype"].split("/")[0], "sendFile"
        )
        assert request.match_info["method"] == expected
        self.expect_session()
        content = await self.content_of(body["file"])
        return await self.deliver(
            request,
            body,
            text=body["caption"],
            media=hashlib.sha256(content).hexdigest(),
            filename=body["file"]["filename"],
        )

    async def content_of(self, file: dict[str, str]) -> bytes:
        if "data" in file:
            return base64.b64decode(file["data"], validate=True)
        try:
            return await fetched(file["url"])
        except OSError as error:  # as GOWS answers, with the request in it
            exception = {
                "name": "AxiosError",
                "message": str(error),
                "stack": "AxiosError: ...\n    at settle",
            }
            body = {"statusCode": 500, "exception": exception, "request": {"body": {"file": file}}}
            raise RefusedError(Reply(status=500, body=body)) from error

    async def deliver(
        self, request: web.Request, body: dict[str, Any], *, text: str, media: str = "", filename: str = ""
    ) -> web.StreamResponse:
        self.expect_session()
        address = body["chatId"].replace("@c.us", "")
        address = f"+{address}" if address.isdigit() else address
        received = Received(address=address, text=text, chars=len(text), media=media, filename=filename)
        if "secret" in address:
            raise RefusedError(Reply(status=400, body={"message": [f"{address} is no chat"]}))
        message_id = f"true_{body['chatId']}_3EB0{len(self.messages):04}"
        return await self.take(request, received, Reply(status=201, body={"id": message_id, "ack": 1}))

    def expect_session(self, *states: str) -> None:
        if self.state is None:
            raise RefusedError(Reply(status=404, body={"message": "Session not found", "statusCode": 404}))
        if self.state not in (states or ("WORKING",)):
            raise RefusedError(Reply(status=422, body={**NOT_WORKING, "status": self.state}))

    def info(self) -> web.Response:
        return web.json_response({"name": "default", "status": self.state, "config": self.config})

    async def session(self, request: web.Request) -> web.StreamResponse:
        if self.state is None:
            self.expect_session()
        assert request.match_info["session"] == "default"
        return self.info()

    async def create(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, {"name": str, "start": bool, "config": CONFIG})
        assert self.state is None, "it exists already"
        self.state, self.config = "STARTING", body["config"]
        return self.info()

    async def update(self, request: web.Request) -> web.StreamResponse:
        self.config = (await self.checked(request, {"config": CONFIG}))["config"]
        return self.info()

    async def move(self, request: web.Request) -> web.StreamResponse:
        self.check_without_body(request)
        if self.state is None:
            self.expect_session()
        self.state = {"restart": "STARTING", "logout": "SCAN_QR_CODE"}[request.match_info["verb"]]
        return self.info()

    async def qr(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept"] == "application/json"
        self.expect_session("SCAN_QR_CODE")
        assert request.query.get("format") == "raw"
        return web.json_response(self.code)

    async def request_code(self, request: web.Request) -> web.StreamResponse:
        await self.checked(request, {"phoneNumber": re.compile(r"[0-9]+")})
        self.expect_session("SCAN_QR_CODE")
        return web.json_response({"code": "ABCD-EFGH"}, status=201)

    async def list_groups(self, request: web.Request) -> web.StreamResponse:
        self.expect_session()
        self.check(
            dict(request.query), {"limit": str, "offset": str, "sortBy": str, "sortOrder": str}, "query"
        )
        first, limit = int(request.query["offset"]), int(request.query["limit"])
        return web.json_response(self.groups[first : first + limit] if self.pages else self.groups)

    async def show_lid(self, request: web.Request) -> web.StreamResponse:
        self.expect_session()
        lid = request.match_info["lid"]
        if lid not in self.lids:
            raise RefusedError(Reply(status=404, body={"message": "Not Found", "statusCode": 404}))
        return web.json_response({"lid": lid, "pn": self.lids[lid]})

    async def show(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, {"session": str, "chatId": CHAT})
        self.shown.append((request.match_info["verb"], body["chatId"]))
        seen = request.match_info["verb"] == "sendSeen"
        return web.json_response({}, status=500 if seen and self.refuses_seen else 201)

    async def check_exists(self, request: web.Request) -> web.StreamResponse:
        self.check(dict(request.query), {"phone": re.compile(r"[0-9]+"), "session": str}, "query")
        known = request.query["phone"] == "4915112345678"
        return web.json_response({"numberExists": known, "chatId": "4915112345678@c.us" if known else None})


class TestWaha(TransportContract, InlineMediaContract, MediaAddressContract, GroupContract, AnswerContract):
    service = Waha
    table = (
        Said(
            reply=Reply(status=404, body={"message": "Session not found"}), means=NotConnected, words="pair"
        ),
        Said(reply=Reply(status=422, body=NOT_WORKING), means=NotConnected, words="SCAN_QR_CODE"),
        Said(
            reply=Reply(
                status=422, body={"message": "Only in Plus version", "error": "Unprocessable Entity"}
            ),
            means=Rejected,
            code="Unprocessable Entity",
            words="Plus",
        ),
        Said(
            reply=Reply(status=500, body={"exception": {"message": "2 UNKNOWN: server returned error 463"}}),
            means=Rejected,
            code="463",
            words="new chats",
        ),
        Said(
            reply=Reply(status=500, body={"exception": {"message": "2 UNKNOWN: server returned error 475"}}),
            means=Rejected,
            code="475",
            words="quota",
        ),
        Said(
            reply=Reply(status=500, body={"exception": {"message": "server returned error 4750"}}),
            means=Unknown,
            words="4750",
        ),
        Said(
            reply=Reply(status=500, body={"exception": {"message": "Timeout"}}),
            means=Unknown,
            words="Timeout",
        ),
        Said(reply=Reply(status=503, body=b"no server is available"), means=ServerError),
        Said(reply=Reply(status=429, body={}, headers={"Retry-After": "7"}), means=RateLimited, after=7.0),
        Said(reply=Reply(status=201, body={"id": {"_serialized": "true_1@c.us_A1"}}), means=Sent),
        Said(reply=Reply(status=201, body={"key": {"id": "A1"}}), means=Sent),
        Said(reply=Reply(status=201, body={"id": None}), means=Unknown, words="cannot be read"),
        Said(reply=Reply(status=302, headers={"Location": "/"}), means=Unreachable),
        Said(reply=Reply(status=403, body={}), means=AccountBlocked),
    )

    async def test_a_person_is_written_to_by_number(self, transport: WahaTransport, harness: Waha) -> None:
        await transport.send(Message(address="+4915112345678", kind="text", text="Hi"), "k")
        assert harness.messages[0].address == "+4915112345678"

    async def test_the_id_is_the_one_that_acknowledgements_name(
        self, transport: WahaTransport, text: Message
    ) -> None:
        assert await transport.send(text, "k") == Sent(provider_id="3EB00000")

    @pytest.mark.parametrize("kind", ["video/mp4", "application/pdf", "audio/mpeg"])
    async def test_each_kind_of_file_goes_its_way(
        self, transport: WahaTransport, harness: Waha, kind: str
    ) -> None:
        message = picture(harness.address, replace(photo(), content_type=kind))
        assert isinstance(await transport.send(message, "k"), Sent)

    async def test_a_file_that_the_server_would_not_read_is_refused_before(
        self, transport: WahaTransport, harness: Waha, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(WahaTransport, "most_file_bytes", 10)
        outcome = await transport.send(picture(harness.address), "k")
        assert isinstance(outcome, Rejected)
        assert outcome.code == "media_too_large"
        assert harness.asked == []

    # Groups

    async def test_groups_come_page_by_page(self, transport: WahaTransport, harness: Waha) -> None:
        harness.groups = [{"id": f"{n}@g.us", "subject": f"G{n}"} for n in range(250)]
        assert len([contact async for contact in transport.recipients()]) == 250
        assert len(harness.asked) == 3

    async def test_an_engine_that_knows_no_pages_is_asked_twice_at_most(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.pages = False
        harness.groups = [{"id": {"_serialized": f"{n}@g.us"}, "name": f"G{n}"} for n in range(100)]
        assert len([contact async for contact in transport.recipients()]) == 100
        assert len(harness.asked) == 2

    async def test_every_engine_has_its_own_shape_of_a_group(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.groups = [
            {"id": "1@g.us", "subject": "One"},
            {"id": {"_serialized": "2@g.us"}, "name": "Two"},
            {"JID": "3@g.us", "Name": "Three"},
            {"id": "4@g.us"},
            None,
        ]
        found = [(contact.address, contact.name) async for contact in transport.recipients()]
        assert found == [("1@g.us", "One"), ("2@g.us", "Two"), ("3@g.us", "Three"), ("4@g.us", "4@g.us")]

    async def test_a_number_can_be_checked(self, transport: WahaTransport) -> None:
        assert await transport.check_number("+4915112345678")
        assert not await transport.check_number("+4915100000000")

    @pytest.mark.parametrize("refuses", [False, True])
    async def test_a_chat_is_seen_and_typed_in(
        self, transport: WahaTransport, harness: Waha, refuses: bool
    ) -> None:
        harness.refuses_seen = refuses  # as the engine that wants the ids of messages
        await transport.start_typing("+4915112345678", 3.0)
        await transport.stop_typing("+4915112345678")
        verbs = [verb for verb, chat in harness.shown if chat == "4915112345678@c.us"]
        assert verbs == ["sendSeen", "startTyping", "stopTyping"]
        assert harness.messages == []

    async def test_it_can_be_asked_who_is_behind_a_hidden_address(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.lids = {"77@lid": "4915112345678@c.us", "78@lid": None}
        assert await transport.number_behind("77@lid") == "+4915112345678"
        assert await transport.number_behind("78@lid") == ""
        assert await transport.number_behind("79@lid") == ""

    # The session

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ("WORKING", AccountState.WORKING),
            ("SCAN_QR_CODE", AccountState.PAIRING),
            ("PASSKEY_REQUIRED", AccountState.PAIRING),
            ("PASSKEY_CONFIRMATION_REQUIRED", AccountState.PAIRING),
            ("STARTING", AccountState.STARTING),
            ("STOPPED", AccountState.STOPPED),
            ("FAILED", AccountState.STOPPED),
            (None, AccountState.STOPPED),
        ],
    )
    async def test_its_states(
        self, transport: WahaTransport, harness: Waha, told: str | None, state: AccountState
    ) -> None:
        harness.state = told
        assert await transport.status() is state

    async def test_a_session_that_is_not_there_is_made_and_started(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.state = None
        assert await transport.connect(WEBHOOK_OURS) is AccountState.STARTING
        [webhook] = harness.config["webhooks"]
        assert (webhook["url"], webhook["hmac"]) == (WEBHOOK_OURS.url, {"key": WEBHOOK_SECRET})

    @pytest.mark.parametrize("state", ["STOPPED", "FAILED"])
    async def test_a_session_that_stopped_is_started_again(
        self, transport: WahaTransport, harness: Waha, state: str
    ) -> None:
        harness.state = state
        assert await transport.connect(None) is AccountState.STARTING
        assert harness.state == "STARTING"

    async def test_telling_where_to_report_makes_and_starts_nothing(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.state = None
        with pytest.raises(UnansweredError, match="does not exist"):
            await transport.connect(WEBHOOK_OURS, start=False)
        harness.state = "STOPPED"
        assert await transport.connect(WEBHOOK_OURS, start=False) is AccountState.STOPPED
        assert harness.state == "STOPPED"
        assert harness.config["webhooks"][0]["url"] == WEBHOOK_OURS.url

    async def test_what_is_known_is_not_told_again(self, transport: WahaTransport, harness: Waha) -> None:
        harness.config = {"proxy": {"server": "p"}}
        for _ in range(3):
            assert await transport.connect(WEBHOOK_OURS) is AccountState.WORKING
        assert [method for method, _ in harness.asked].count("PUT") == 1
        assert harness.config["proxy"] == {"server": "p"}

    @pytest.mark.parametrize(
        "older",
        [
            Webhook(url="https://paceline.example/hooks/7f/new-key", secret="an older secret"),
            Webhook(url="https://paceline.example/hooks/7f/old-key", secret=WEBHOOK_SECRET),
            Webhook(url="https://before.example/hooks/7f/new-key", secret=WEBHOOK_SECRET),
        ],
    )
    async def test_a_new_address_or_secret_replaces_the_old_one(
        self, transport: WahaTransport, harness: Waha, older: Webhook
    ) -> None:
        await transport.connect(older)
        await transport.connect(WEBHOOK_OURS)
        [known] = harness.config["webhooks"]
        assert (known["url"], known["hmac"]["key"]) == (WEBHOOK_OURS.url, WEBHOOK_SECRET)

    async def test_what_a_server_adds_by_itself_restarts_nothing(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        await transport.connect(WEBHOOK_OURS)
        harness.config["webhooks"][0]["customHeaders"] = None
        harness.config["noweb"] = {"store": {"enabled": False}}
        await transport.connect(WEBHOOK_OURS)
        assert [method for method, _ in harness.asked].count("PUT") == 1

    async def test_the_webhooks_of_others_stay(self, transport: WahaTransport, harness: Waha) -> None:
        theirs = {**WEBHOOK_GOOD, "url": "https://crm.example/waha"}
        harness.config = {"webhooks": [theirs]}
        await transport.connect(WEBHOOK_OURS)
        assert [each["url"] for each in harness.config["webhooks"]] == [theirs["url"], WEBHOOK_OURS.url]

    async def test_pairing_shows_a_code_until_it_is_scanned(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.state = "SCAN_QR_CODE"
        offered = await transport.pairing()
        assert offered is not None
        assert offered.code == "2@code"
        assert await transport.pairing_code("+4915112345678") == "ABCD-EFGH"
        harness.state = "WORKING"
        with pytest.raises(UnansweredError):
            await transport.pairing()

    async def test_while_the_session_starts_its_code_is_on_its_way(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.state = "STARTING"
        assert await transport.pairing() is None
        harness.state = "FAILED"
        with pytest.raises(UnansweredError, match="FAILED"):
            await transport.pairing()

    async def test_the_members_of_groups_tell_who_is_behind_a_hidden_address(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.groups = [
            {"id": "1@g.us", "participants": [{"id": "71@lid", "pn": "4915112345671@c.us", "role": "admin"}]},
            {
                "JID": "2@g.us",
                "Participants": [
                    {"JID": "72@lid", "PhoneNumber": "4915112345671@s.whatsapp.net", "LID": "72@lid"}
                ],
            },
            {"id": "3@g.us", "participants": {"odd": 1}},
        ]
        found = [contact.members async for contact in transport.recipients()]
        number = "+4915112345671"
        assert found == [
            (Known(hidden="71@lid", address=number),),
            (Known(hidden="72@lid", address=number),),
            (),
        ]

    async def test_an_older_server_gives_a_picture_of_the_code(
        self, transport: WahaTransport, harness: Waha
    ) -> None:
        harness.state = "SCAN_QR_CODE"
        harness.code = {"mimetype": "image/png", "data": base64.b64encode(PICTURE).decode()}
        offered = await transport.pairing()
        assert offered is not None
        assert offered.image == PICTURE
        harness.code = {"mimetype": "image/png", "data": "?"}
        with pytest.raises(UnansweredError):
            await transport.pairing()

    async def test_logging_out_twice_is_no_error(self, transport: WahaTransport, harness: Waha) -> None:
        await transport.disconnect()
        assert harness.state == "SCAN_QR_CODE"
        harness.state = None
        await transport.disconnect()

    async def test_its_own_limits_are_read_and_what_an_engine_lacks_is_not_known(
        self, transport: Transport, harness: Waha
    ) -> None:
        assert await transport.own_limits() == OwnLimits()
        harness.limits = {
            "capping": {"cappingStatus": "NONE", "totalQuota": 30, "usedQuota": 4, "cycleEnd": 1_796_803_200},
            "timelock": "not supported",
        }
        found = await transport.own_limits()
        assert (found.new_chats, found.new_chats_used, found.locked) == (30, 4, False)
        assert found.new_chats_until == datetime.fromtimestamp(1_796_803_200, UTC)
        harness.limits = {"timelock": {"isActive": True, "timeEnforcementEnds": 1_796_803_200}}
        assert (await transport.own_limits()).locked_until == found.new_chats_until


WEBHOOK_OURS = Webhook(url="https://paceline.example/hooks/7f/new-key", secret=WEBHOOK_SECRET)
WEBHOOK_GOOD = {
    "url": "",
    "events": ["message"],
    "hmac": {"key": "theirs"},
    "retries": {"policy": "linear", "delaySeconds": 1, "attempts": 1},
}
AT = datetime(2026, 11, 18, 11, 59, tzinfo=UTC)


def message(**payload: Any) -> dict[str, Any]:
    known = {
        "id": "false_4915112345678@c.us_3A01",
        "timestamp": AT.timestamp(),
        "from": "4915112345678@c.us",
        "fromMe": False,
        "body": "STOP",
    }
    return {"id": "evt_1", "session": "default", "event": "message", "payload": known | payload}


def ack(number: int, **payload: Any) -> dict[str, Any]:
    known = {"id": "true_120363@g.us_3EB0_4915@c.us", "fromMe": True, "ack": number}
    return {
        "id": f"evt_ack_{number}",
        "session": "default",
        "event": "message.ack",
        "payload": known | payload,
    }


def status(state: str) -> dict[str, Any]:
    payload = {"name": "default", "status": state}
    return {"id": f"evt_{state}", "session": "default", "event": "session.status", "payload": payload}


def inbound(provider_id: str = "3A01", *, sender: str = "+4915112345678", chat: str = "") -> Inbound:
    return Inbound(
        event_id=f"message:{provider_id}",
        provider_id=provider_id,
        sender=sender,
        chat=chat or sender,
        text="STOP",
        at=AT,
    )


def known(lid: str) -> AddressLearnt:
    pair = Known(hidden=f"{lid}@lid", address="+4915112345678")
    return AddressLearnt(event_id=f"address:{lid}@lid:+4915112345678", known=pair)


def receipt(state: ReceiptState) -> Receipt:
    return Receipt(event_id=f"receipt:3EB0:{state}", provider_id="3EB0", state=state, at=NOW)


class TestWahaWebhooks(WebhookContract):
    service = Waha
    fresh_for = timedelta(minutes=15)
    reports = (
        Reported(body=message(), events=[inbound()]),
        Reported(
            body=message(
                id="false_120363@g.us_3A02_4915112345678@c.us",
                **{"from": "120363@g.us", "participant": "4915112345678:7@c.us"},
            ),
            events=[inbound("3A02", chat="120363@g.us")],
        ),
        Reported(
            body=message(
                id="false_77@lid_3A03",
                **{"from": "77@lid", "_data": {"key": {"remoteJidAlt": "4915112345678@s.whatsapp.net"}}},
            ),
            events=[known("77"), inbound("3A03")],
        ),
        Reported(  # as GOWS tells it
            body=message(
                id="false_78@lid_3A05",
                **{
                    "from": "78@lid",
                    "_data": {
                        "Info": {
                            "Chat": "78@lid",
                            "Sender": "78:3@lid",
                            "SenderAlt": "4915112345678@s.whatsapp.net",
                        },
                        "Message": {"conversation": "STOP"},
                    },
                },
            ),
            events=[known("78"), inbound("3A05")],
        ),
        Reported(
            body=ack(2, id="true_79@lid_3EB1"),
            events=[
                Receipt(
                    event_id="receipt:3EB1:delivered",
                    provider_id="3EB1",
                    state=ReceiptState.DELIVERED,
                    at=NOW,
                    chat="79@lid",
                )
            ],
        ),
        Reported(
            body=message(id="false_77@lid_3A04", **{"from": "77@lid"}),
            events=[inbound("3A04", sender="77@lid")],
        ),
        Reported(body=message(fromMe=True), events=[]),
        Reported(  # `from` is ourselves then
            body=message(
                fromMe=True,
                **{"from": "99@lid", "_data": {"key": {"remoteJidAlt": "4915112345678@s.whatsapp.net"}}},
            ),
            events=[],
        ),
        Reported(body=message(**{"from": "status@broadcast"}), events=[]),
        Reported(body=ack(-1), events=[receipt(ReceiptState.FAILED)]),
        Reported(body=ack(0), events=[]),
        Reported(body=ack(1), events=[receipt(ReceiptState.SENT)]),
        Reported(body=ack(2), events=[receipt(ReceiptState.DELIVERED)]),
        Reported(body=ack(3), events=[receipt(ReceiptState.READ)]),
        Reported(body=ack(3, fromMe=False), events=[]),
        Reported(
            body=status("FAILED"),
            events=[
                SessionChanged(
                    event_id="evt_FAILED", state=AccountState.STOPPED, at=NOW, reason="the session is FAILED"
                )
            ],
        ),
        Reported(body=status("STARTING"), events=[]),
        Reported(body={"session": "default", "event": "presence.update", "payload": {}}, events=[]),
    )
    for_others = message() | {"session": "another"}
    no_replies = {
        "our own": message(fromMe=True),
        "a status": message(**{"from": "status@broadcast"}),
        "a channel": message(**{"from": "120363144038483540@newsletter"}),
        "a note about encryption": message(_data={"type": "e2e_notification"}),
        "a group's news": message(_data={"type": "gp2"}),
        **{
            f"no message {n}": message(body="", _data={"message": content})
            for n, content in enumerate(NOTHING)
            if isinstance(content, dict) and content
        },
    }
    words = {
        "as WAHA reads them": message(),
        **{
            f"words {n}": message(body=None, _data={name: content})
            for name in ("message", "Message")
            for n, (content, words) in enumerate(WORDS)
            if words == "STOP"
        },
    }

    def body(self, report: Mapping[str, Any], made_at: datetime) -> bytes:
        return json.dumps({"timestamp": made_at.timestamp() * 1000} | dict(report)).encode()

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        return {
            "x-webhook-hmac": hmac.new(secret.encode(), body, hashlib.sha512).hexdigest(),
            "x-webhook-hmac-algorithm": "sha512",
            "x-webhook-request-id": "01J",
            "x-webhook-timestamp": str(int(made_at.timestamp() * 1000)),
        }

    def test_what_was_played_was_read(self, reader: WahaTransport) -> None:
        assert reader.parse_webhook(self.request(ack(4))) == [receipt(ReceiptState.READ)]

    def test_a_report_from_the_future_is_refused(self, reader: WahaTransport) -> None:
        with pytest.raises(WebhookRefusedError):
            reader.parse_webhook(self.request(message(), made_at=NOW + timedelta(hours=1)))

    def test_an_older_server_tells_the_time_in_a_header_alone(self, reader: WahaTransport) -> None:
        request = self.request(message())
        body = json.dumps(message()).encode()
        headers = self.headers(body, WEBHOOK_SECRET, NOW)
        assert reader.parse_webhook(replace(request, body=body, headers=headers)) == [inbound()]
