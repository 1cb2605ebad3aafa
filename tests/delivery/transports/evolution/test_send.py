"""Evolution API 2, against a small server that checks every request as its description says."""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from aiohttp import web

from delivery.outcomes import AccountBlocked, NotConnected, RateLimited, Rejected, Sent, Unknown
from delivery.transports.base import (
    AccountState,
    AddressLearnt,
    FirstContactsLocked,
    Inbound,
    Known,
    Message,
    Receipt,
    ReceiptState,
    SessionChanged,
    UnansweredError,
    Webhook,
    WebhookRefusedError,
)
from delivery.transports.evolution.send import EvolutionTransport
from delivery.transports.http.connection import MAX_ANSWER_BYTES
from delivery.transports.whatsapp.addresses import LOCKED, USED_UP
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
from tests.delivery.transports.harness import SECRET, Received, Scenario, photo, picture
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, WEBHOOK_SECRET, Reported, WebhookContract
from tests.delivery.transports.whatsapp.test_content import NOTHING, WORDS

# As servers of several versions list them.
MEMBERS = [
    {"id": "71@lid", "phoneNumber": "4915112345671@s.whatsapp.net", "admin": None},
    {"id": "72@lid", "jid": "4915112345672@s.whatsapp.net", "lid": "72@lid"},
    {"id": "4915112345673@s.whatsapp.net", "lid": "73@lid", "admin": "superadmin"},
    {"id": "74@lid", "admin": None},
    {"id": "4915112345675@s.whatsapp.net"},
    {"id": ["odd"]},
    None,
]
NUMBER = re.compile(r"[0-9]+|.+@(g\.us|lid)|.*secret.*")
TEXT = {"number": NUMBER, "text": str}
MEDIA = {
    "number": NUMBER,
    "mediatype": frozenset({"image", "document", "video", "audio"}),
    "mimetype": str,
    "caption": str,
    "media": str,
    "fileName": str,
}
EVENT = frozenset({"MESSAGES_UPSERT", "MESSAGES_UPDATE", "CONNECTION_UPDATE"})
WEBHOOK = {
    "enabled": bool,
    "url": re.compile(r"https?://.+"),
    "events": [EVENT],
    "headers": {"jwt_key": str},
    "byEvents": bool,
    "base64": bool,
}
WEBHOOK_SET = {
    "enabled": bool,
    "url": str,
    "events": [EVENT],
    "webhookByEvents": bool,
    "webhookBase64": bool,
    "webhook": WEBHOOK,
}
CREATE = {
    "instanceName": str,
    "integration": frozenset({"WHATSAPP-BAILEYS"}),
    "qrcode": bool,
    "webhook": Maybe(WEBHOOK),
}


def failure(status: int, error: str, *message: Any) -> Reply:
    return Reply(
        status=status, body={"status": status, "error": error, "response": {"message": list(message)}}
    )


class Evolution(Gateway):
    kind = EvolutionTransport
    address = "120363000000000001@g.us"
    refused_address = "+4915100000000"
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}
    longest_wait = 30.0
    answers = {
        Scenario.RATE_LIMITS: Reply(
            status=429, body={"error": "Too Many Requests"}, headers={"Retry-After": "30"}
        ),
        Scenario.NOT_CONNECTED: failure(400, "Bad Request", "Error: Connection Closed"),
        Scenario.BLOCKED: failure(401, "Unauthorized", "Unauthorized"),
        Scenario.REJECTS: failure(
            400,
            "Bad Request",
            {"jid": "4915100000000@s.whatsapp.net", "exists": False, "number": "4915100000000"},
        ),
        Scenario.BREAKS_AFTER: failure(500, "Internal Server Error", "Timed Out"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.state: str | None = "open"  # None: the instance does not exist
        self.webhook: dict[str, Any] = {}
        self.codes_to_come = 0
        self.presences: list[dict[str, Any]] = []
        self.too_many_members = False

    def credentials_on(self, port: int) -> dict[str, str]:
        return {"base_url": f"http://127.0.0.1:{port}", "api_key": SECRET, "instance": "north 1"}

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "api_key": f"{SECRET}-but-another"}

    def check_secret(self, request: web.Request) -> None:
        if not same_secret(request.headers.get("apikey"), SECRET):
            raise RefusedError(self.answers[Scenario.BLOCKED])

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.post("/message/sendText/{instance}", self.send_text),
            web.post("/message/sendMedia/{instance}", self.send_media),
            web.get("/instance/connectionState/{instance}", self.connection_state),
            web.post("/instance/create", self.create),
            web.get("/instance/connect/{instance}", self.connect),
            web.delete("/instance/logout/{instance}", self.logout),
            web.post("/webhook/set/{instance}", self.set_webhook),
            web.post("/chat/whatsappNumbers/{instance}", self.numbers),
            web.post("/chat/sendPresence/{instance}", self.presence),
            web.get("/group/fetchAllGroups/{instance}", self.groups),
        ]

    def expect_instance(self, request: web.Request) -> None:
        assert request.match_info["instance"] == "north 1"
        if self.state is None:
            raise RefusedError(failure(404, "Not Found", 'The "north 1" instance does not exist'))

    async def send_text(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, TEXT)
        return await self.deliver(request, body["number"], text=body["text"])

    async def presence(self, request: web.Request) -> web.StreamResponse:
        shape = {"number": str, "presence": frozenset({"composing"}), "delay": int}
        self.presences.append(await self.checked(request, shape))
        return web.json_response({}, status=201)

    async def send_media(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, MEDIA)
        assert body["mediatype"] == body["mimetype"].split("/")[0] or body["mediatype"] == "document"
        content = await self.content_of(body["media"])
        return await self.deliver(
            request,
            body["number"],
            text=body["caption"],
            media=hashlib.sha256(content).hexdigest(),
            filename=body["fileName"],
        )

    async def content_of(self, media: str) -> bytes:
        if not media.startswith("http"):
            return base64.b64decode(media, validate=True)
        try:
            return await fetched(media)
        except OSError as error:  # as Baileys says it, with the address in it
            raise RefusedError(failure(500, "Internal Server Error", f"Error: {error}")) from error

    async def deliver(
        self, request: web.Request, number: str, *, text: str, media: str = "", filename: str = ""
    ) -> web.StreamResponse:
        self.expect_instance(request)
        address = f"+{number}" if number.isdigit() else number
        if "secret" in address:
            raise RefusedError(failure(400, "Bad Request", [f"{address} is no number"]))
        received = Received(address=address, text=text, chars=len(text), media=media, filename=filename)
        key = {"remoteJid": number, "fromMe": True, "id": f"BAE5{len(self.messages):04}"}
        return await self.take(request, received, Reply(status=201, body={"key": key, "status": "PENDING"}))

    async def connection_state(self, request: web.Request) -> web.StreamResponse:
        self.expect_instance(request)
        return web.json_response({"instance": {"instanceName": "north 1", "state": self.state}})

    async def create(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, CREATE)
        assert self.state is None, "it exists already"
        self.state, self.webhook = "connecting", body.get("webhook", {})
        return web.json_response(
            {"instance": {"status": "connecting"}, "qrcode": {"code": "2@a"}}, status=201
        )

    async def connect(self, request: web.Request) -> web.StreamResponse:
        self.expect_instance(request)
        self.check(dict(request.query), {"number": Maybe(re.compile(r"[0-9]+"))}, "query")
        if self.state == "open":
            return web.json_response({"instance": {"instanceName": "north 1", "state": "open"}})
        self.state = "connecting"
        if self.codes_to_come:
            self.codes_to_come -= 1
            return web.json_response({"count": 0})  # WhatsApp has not given it one yet
        code = "WZYEH1YY" if "number" in request.query else None
        return web.json_response({"pairingCode": code, "code": "2@y8eK+bjt", "count": 1})

    async def logout(self, request: web.Request) -> web.StreamResponse:
        self.expect_instance(request)
        if self.state == "close":
            raise RefusedError(failure(400, "Bad Request", 'The "north 1" instance is not connected'))
        self.state = "close"
        return web.json_response({"status": "SUCCESS", "error": False, "response": {"message": "Logged out"}})

    async def set_webhook(self, request: web.Request) -> web.StreamResponse:
        self.expect_instance(request)
        self.webhook = (await self.checked(request, WEBHOOK_SET))["webhook"]
        return web.json_response({"webhook": {"webhook": {"enabled": True}}}, status=201)

    async def numbers(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, {"numbers": [re.compile(r"[0-9]+")]})
        return web.json_response(
            [{"exists": each == "4915112345678", "jid": each, "number": each} for each in body["numbers"]]
        )

    async def groups(self, request: web.Request) -> web.StreamResponse:
        self.check(dict(request.query), {"getParticipants": frozenset({"true", "false"})}, "query")
        wanted = request.query["getParticipants"] == "true"
        if wanted and self.too_many_members:
            return web.Response(body=b"[" + b" " * MAX_ANSWER_BYTES + b"]", content_type="application/json")
        inside = {"participants": MEMBERS} if wanted else {}
        return web.json_response(
            [
                {"id": f"12036300{n:04}@g.us", "subject": f"Group {n}" if n else "", "size": 3, **inside}
                for n in range(3)
            ]
        )


class TestEvolution(
    TransportContract, InlineMediaContract, MediaAddressContract, GroupContract, AnswerContract
):
    service = Evolution
    table = (
        Said(
            reply=failure(400, "Bad Request", {"exists": False}),
            means=Rejected,
            code="not_on_whatsapp",
            words="not on WhatsApp",
        ),
        Said(
            reply=failure(400, "Bad Request", ['instance requires property "text"']),
            means=Rejected,
            code="Bad Request",
            words="requires",
        ),
        Said(reply=failure(400, "Bad Request", "Error: Connection Closed"), means=NotConnected, words="pair"),
        Said(reply=failure(500, "Internal Server Error", "Connection Closed"), means=NotConnected),
        Said(reply=failure(404, "Not Found", 'The "x" instance does not exist'), means=NotConnected),
        Said(reply=failure(500, "Internal Server Error", "Timed Out"), means=Unknown, words="Timed Out"),
        Said(reply=failure(401, "Unauthorized", "Unauthorized"), means=AccountBlocked),
        Said(reply=Reply(status=429, body={}), means=RateLimited, after=None),
        Said(reply=Reply(status=201, body={"key": {}}), means=Unknown, words="cannot be read"),
        Said(reply=Reply(status=200, body={"key": {"id": "A"}}), means=Sent),
    )

    async def test_a_person_is_written_to_by_number(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        await transport.send(Message(address="+4915112345678", kind="text", text="Hi"), "k")
        assert harness.messages[0].address == "+4915112345678"

    @pytest.mark.parametrize("kind", ["video/mp4", "application/pdf", "audio/mpeg"])
    @pytest.mark.parametrize("caption", ["", "Listen!"])
    async def test_each_kind_of_file_goes_its_way(
        self, transport: EvolutionTransport, harness: Evolution, kind: str, caption: str
    ) -> None:
        message = picture(harness.address, replace(photo(), content_type=kind))
        assert isinstance(await transport.send(replace(message, text=caption), "k"), Sent)

    async def test_a_number_can_be_checked(self, transport: EvolutionTransport) -> None:
        assert await transport.check_number("+4915112345678")
        assert not await transport.check_number("+4915100000000")

    async def test_typing_is_shown_for_a_while(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        await transport.start_typing("+4915112345678", 3.0)
        await transport.stop_typing("+4915112345678")
        assert harness.presences == [{"number": "4915112345678", "presence": "composing", "delay": 2800}]

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ("open", AccountState.WORKING),
            ("connecting", AccountState.STARTING),  # also while it reconnects by itself
            ("close", AccountState.STOPPED),
            ("refused", AccountState.STOPPED),
            (None, AccountState.STOPPED),
        ],
    )
    async def test_its_states(
        self, transport: EvolutionTransport, harness: Evolution, told: str | None, state: AccountState
    ) -> None:
        harness.state = told
        assert await transport.status() is state

    async def test_an_instance_that_is_not_there_is_made(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state = None
        assert await transport.connect(WEBHOOK_OURS) is AccountState.PAIRING
        assert harness.webhook["headers"] == {"jwt_key": WEBHOOK_SECRET}

    async def test_it_can_be_made_without_webhooks(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state = None
        assert await transport.connect(None) is AccountState.PAIRING
        assert harness.webhook == {}

    async def test_an_instance_that_is_there_hears_where_to_report(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        assert await transport.connect(WEBHOOK_OURS) is AccountState.WORKING
        assert harness.webhook["url"] == WEBHOOK_OURS.url

    async def test_an_instance_that_is_closed_is_connected(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state = "close"
        assert await transport.connect(None) is AccountState.PAIRING
        assert harness.state == "connecting"

    async def test_pairing_shows_a_code_until_it_is_scanned(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state = "close"
        offered = await transport.pairing()
        assert offered is not None
        assert offered.code == "2@y8eK+bjt"
        assert await transport.pairing_code("+4915112345678") == "WZYEH1YY"
        harness.state = "open"
        with pytest.raises(UnansweredError, match="connected already"):
            await transport.pairing()
        with pytest.raises(UnansweredError):
            await transport.pairing_code("+4915112345678")

    async def test_a_code_that_is_not_there_yet_is_no_error(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state, harness.codes_to_come = "connecting", 2
        assert await transport.pairing() is None
        with pytest.raises(UnansweredError, match="try again in some seconds"):
            await transport.pairing_code("+4915112345678")
        assert await transport.pairing() is not None

    async def test_telling_where_to_report_makes_and_starts_nothing(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        harness.state = None
        with pytest.raises(UnansweredError, match="does not exist"):
            await transport.connect(WEBHOOK_OURS, start=False)
        harness.state = "close"
        assert await transport.connect(WEBHOOK_OURS, start=False) is AccountState.STOPPED
        assert (harness.state, harness.webhook["url"]) == ("close", WEBHOOK_OURS.url)

    async def test_the_members_of_groups_tell_who_is_behind_a_hidden_address(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        groups = [contact async for contact in transport.recipients()]
        assert groups[0].members == tuple(
            Known(hidden=f"7{n}@lid", address=f"+491511234567{n}") for n in (1, 2, 3)
        )
        harness.too_many_members = True
        again = [contact async for contact in transport.recipients()]
        assert [contact.name for contact in again] == [contact.name for contact in groups]
        assert {contact.members for contact in again} == {()}

    async def test_logging_out_twice_is_no_error(
        self, transport: EvolutionTransport, harness: Evolution
    ) -> None:
        for _ in range(2):
            await transport.disconnect()
        assert harness.state == "close"


WEBHOOK_OURS = Webhook(url="https://paceline.example/webhooks/abc", secret=WEBHOOK_SECRET)
AT = datetime(2026, 11, 18, 11, 59, tzinfo=UTC)


def report(event: str, data: Any) -> dict[str, Any]:
    return {
        "event": event,
        "instance": "north 1",
        "data": data,
        "date_time": "2026-11-18T09:00:00.000Z",
        "apikey": SECRET,
    }


def written(message: dict[str, Any], told: str = "3A01", **key: Any) -> dict[str, Any]:
    known = {"id": told, "remoteJid": "4915112345678@s.whatsapp.net", "fromMe": False}
    data = {"key": known | key, "message": message, "messageTimestamp": int(AT.timestamp())}
    return report("messages.upsert", data)


def inbound(
    told: str = "3A01", *, sender: str = "+4915112345678", chat: str = "", text: str = "Yes"
) -> Inbound:
    return Inbound(
        event_id=f"message:{told}", provider_id=told, sender=sender, chat=chat or sender, text=text, at=AT
    )


def known(lid: str) -> AddressLearnt:
    pair = Known(hidden=f"{lid}@lid", address="+4915112345678")
    return AddressLearnt(event_id=f"address:{lid}@lid:+4915112345678", known=pair)


def updated(status: Any, told: str = "BAE5", **more: Any) -> dict[str, Any]:
    return report("messages.update", {"keyId": told, "fromMe": True, "status": status} | more)


def receipt(state: ReceiptState, told: str = "BAE5", *, reason: str = "") -> Receipt:
    return Receipt(event_id=f"receipt:{told}:{state}", provider_id=told, state=state, at=NOW, reason=reason)


def connection(state: str, reason: int) -> dict[str, Any]:
    data = {"instance": "north 1", "state": state, "statusReason": reason}
    return report("connection.update", data) | {"date_time": f"{state} {reason}"}


def changed(state: AccountState, told: str, reason: str = "") -> SessionChanged:
    return SessionChanged(event_id=f"connection:{told}", state=state, at=NOW, reason=reason)


class TestEvolutionWebhooks(WebhookContract):
    service = Evolution
    signs_body = False
    fresh_for = timedelta(minutes=10)
    reports = (
        Reported(body=written({"conversation": "Yes"}), events=[inbound()]),
        Reported(
            body=written(
                {"extendedTextMessage": {"text": "Yes"}},
                "3A02",
                remoteJid="120363@g.us",
                participant="4915112345678:3@s.whatsapp.net",
            ),
            events=[inbound("3A02", chat="120363@g.us")],
        ),
        Reported(
            body=written(
                {"imageMessage": {"caption": "Yes"}},
                "3A03",
                remoteJid="77@lid",
                remoteJidAlt="4915112345678@s.whatsapp.net",
            ),
            events=[known("77"), inbound("3A03")],
        ),
        Reported(
            body=written(
                {"conversation": "Yes"},
                "3A05",
                remoteJid="120363@g.us",
                participant="78@lid",
                participantAlt="4915112345678@s.whatsapp.net",
                addressingMode="lid",
            ),
            events=[known("78"), inbound("3A05", chat="120363@g.us")],
        ),
        Reported(
            body=written({"conversation": "Yes"}, "3A06", remoteJid="79@lid", addressingMode="lid"),
            events=[inbound("3A06", sender="79@lid")],
        ),
        Reported(  # what we wrote ourselves tells an address too
            body=written(
                {"conversation": "Hi"},
                "3A07",
                fromMe=True,
                remoteJid="4915112345678@s.whatsapp.net",
                remoteJidAlt="80:2@lid",
            ),
            events=[known("80")],
        ),
        Reported(  # the sender's number is our own then
            body=written(
                {"conversation": "Hi"},
                "3A08",
                fromMe=True,
                remoteJid="82@lid",
                senderPn="4915100000001@s.whatsapp.net",
            ),
            events=[],
        ),
        Reported(
            body=updated("READ", "BAE8", remoteJid="81@lid"),
            events=[replace(receipt(ReceiptState.READ, "BAE8"), chat="81@lid")],
        ),
        Reported(body=written({"audioMessage": {}}, "3A04"), events=[inbound("3A04", text="")]),
        Reported(body=written({"conversation": "Yes"}, fromMe=True), events=[]),
        Reported(body=written({"conversation": "Yes"}, remoteJid="status@broadcast"), events=[]),
        Reported(body=updated("SERVER_ACK"), events=[receipt(ReceiptState.SENT)]),
        Reported(body=updated("DELIVERY_ACK"), events=[receipt(ReceiptState.DELIVERED)]),
        Reported(body=updated("READ"), events=[receipt(ReceiptState.READ)]),
        Reported(body=updated("ERROR"), events=[receipt(ReceiptState.FAILED)]),
        Reported(body=updated(3, "BAE6"), events=[receipt(ReceiptState.DELIVERED, "BAE6")]),
        Reported(body=updated(1), events=[]),
        Reported(body=updated("READ", fromMe=False), events=[]),
        Reported(
            body=report(
                "MESSAGES_UPDATE",
                [{"key": {"id": "BAE7", "fromMe": True}, "status": 0, "messageStubParameters": ["463", "x"]}],
            ),
            events=[
                receipt(ReceiptState.FAILED, "BAE7", reason=LOCKED),
                FirstContactsLocked(event_id="locked:BAE7", at=NOW, reason=LOCKED),
            ],
        ),
        Reported(
            body=report(
                "MESSAGES_UPDATE",
                [{"key": {"id": "BAE8", "fromMe": True}, "status": 0, "messageStubParameters": ["475"]}],
            ),
            events=[
                receipt(ReceiptState.FAILED, "BAE8", reason=USED_UP),
                FirstContactsLocked(event_id="locked:BAE8", at=NOW, reason=USED_UP),
            ],
        ),
        Reported(body=connection("open", 200), events=[changed(AccountState.WORKING, "open:open 200")]),
        Reported(
            body=connection("close", 401),
            events=[changed(AccountState.BLOCKED, "close:close 401", "WhatsApp closed the connection (401)")],
        ),
        Reported(
            body=connection("close", 428),
            events=[changed(AccountState.STOPPED, "close:close 428", "WhatsApp closed the connection (428)")],
        ),
        Reported(body=connection("connecting", 200), events=[]),
        Reported(body=report("presence.update", {}), events=[]),
    )
    for_others = written({"conversation": "Yes"}) | {"instance": "south"}
    no_replies = {
        "our own": written({"conversation": "Yes"}, fromMe=True),
        "a status": written({"conversation": "Yes"}, remoteJid="status@broadcast", participant="49@c.us"),
        "a channel": written({"conversation": "News"}, remoteJid="120363144038483540@newsletter"),
        "a message that could not be read": report(
            "messages.upsert",
            {"key": {"id": "1", "remoteJid": "49@c.us", "fromMe": False}, "messageStubType": 2},
        ),
        **{f"no message {n}": written(content) for n, content in enumerate(NOTHING)},
    }
    words = {f"words {n}": written(content) for n, (content, words) in enumerate(WORDS) if words == "STOP"}

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        claims = {"iat": made_at, "exp": made_at + timedelta(minutes=10), "app": "evolution"}
        return {"authorization": f"Bearer {jwt.encode(claims, secret, algorithm='HS256')}"}

    def test_an_older_server_sends_the_secret_itself(self, reader: EvolutionTransport) -> None:
        request = self.request(self.reports[0].body)
        assert reader.parse_webhook(replace(request, headers={"jwt_key": WEBHOOK_SECRET})) == [inbound()]
        with pytest.raises(WebhookRefusedError):
            reader.parse_webhook(replace(request, headers={"jwt_key": "guessed"}))

    @pytest.mark.parametrize("claims", [{}, {"exp": "never"}, {"exp": None}])
    def test_a_token_without_an_end_is_refused(
        self, reader: EvolutionTransport, claims: dict[str, Any]
    ) -> None:
        token = jwt.encode(claims, WEBHOOK_SECRET, algorithm="HS256")
        request = self.request(self.reports[0].body)
        with pytest.raises(WebhookRefusedError):
            reader.parse_webhook(replace(request, headers={"authorization": f"Bearer {token}"}))

    def test_without_a_secret_nothing_is_believed(self, reader: EvolutionTransport) -> None:
        request = replace(self.request(self.reports[0].body), secret="", headers={"jwt_key": ""})
        with pytest.raises(WebhookRefusedError):
            reader.parse_webhook(request)
