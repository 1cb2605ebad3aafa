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
    FirstContactsLocked,
    Inbound,
    Message,
    Receipt,
    ReceiptState,
    SessionChanged,
    UnansweredError,
    Webhook,
    WebhookRefusedError,
)
from delivery.transports.evolution import EvolutionTransport
from delivery.transports.vocabulary.whatsapp import LOCKED
from tests.delivery.transports.contract import GroupContract, InlineMediaContract, TransportContract
from tests.delivery.transports.gateway import AnswerContract, Gateway, RefusedError, Reply, Said, same_secret
from tests.delivery.transports.harness import SECRET, Received, Scenario, photo, picture
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, WEBHOOK_SECRET, Reported, WebhookContract

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
            web.get("/group/fetchAllGroups/{instance}", self.groups),
        ]

    def expect_instance(self, request: web.Request) -> None:
        assert request.match_info["instance"] == "north 1"
        if self.state is None:
            raise RefusedError(failure(404, "Not Found", 'The "north 1" instance does not exist'))

    async def send_text(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, TEXT)
        return await self.deliver(request, body["number"], text=body["text"])

    async def send_media(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, MEDIA)
        assert body["mediatype"] == body["mimetype"].split("/")[0] or body["mediatype"] == "document"
        content = base64.b64decode(body["media"], validate=True)
        return await self.deliver(
            request,
            body["number"],
            text=body["caption"],
            media=hashlib.sha256(content).hexdigest(),
            filename=body["fileName"],
        )

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
        return web.json_response(
            [
                {"id": f"12036300{n:04}@g.us", "subject": f"Group {n}" if n else "", "size": 3}
                for n in range(3)
            ]
        )


class TestEvolution(TransportContract, InlineMediaContract, GroupContract, AnswerContract):
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

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ("open", AccountState.WORKING),
            ("connecting", AccountState.PAIRING),
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
        assert (await transport.pairing()).code == "2@y8eK+bjt"
        assert await transport.pairing_code("+4915112345678") == "WZYEH1YY"
        harness.state = "open"
        with pytest.raises(UnansweredError):
            await transport.pairing()
        with pytest.raises(UnansweredError):
            await transport.pairing_code("+4915112345678")

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
            events=[inbound("3A03")],
        ),
        Reported(body=written({"audioMessage": {}}, "3A04"), events=[inbound("3A04", text="")]),
        Reported(body=written({"conversation": "Yes"}, fromMe=True), events=[]),
        Reported(body=written({"reactionMessage": {"text": "👍"}}), events=[]),
        Reported(body=written({"protocolMessage": {"type": "REVOKE"}}), events=[]),
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
