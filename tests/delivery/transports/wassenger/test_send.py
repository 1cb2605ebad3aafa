"""Wassenger, against a small server that checks every request as its documentation says."""

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

from delivery.outcomes import AccountBlocked, NotConnected, RateLimited, Rejected, Sent, Unknown
from delivery.transports.base import (
    AccountState,
    Inbound,
    Message,
    Receipt,
    ReceiptState,
    SessionChanged,
    Uploaded,
    WebhookRefusedError,
)
from delivery.transports.wassenger.send import WassengerTransport
from tests.delivery.transports.contract import GroupContract, HandleContract, TransportContract
from tests.delivery.transports.gateway import AnswerContract, Gateway, RefusedError, Reply, Said, same_secret
from tests.delivery.transports.harness import SECRET, Received, Scenario, photo
from tests.delivery.transports.shapes import Maybe
from tests.delivery.transports.webhooks import NOW, WEBHOOK_SECRET, Reported, WebhookContract

DEVICE = "5f2d1d3a9c1e4b0017a3c001"
MESSAGE = {
    "device": re.compile(DEVICE),
    "phone": Maybe(re.compile(r"\+[1-9][0-9]+|.*secret.*")),
    "group": Maybe(re.compile(r"[0-9-]+@g\.us")),
    "message": str,
    "media": Maybe({"file": str}),
    "reference": str,
}


def failure(status: int, code: str = "", message: str = "It says why") -> Reply:
    return Reply(status=status, body={"status": status, "errorCode": code, "message": message})


class Wassenger(Gateway):
    kind = WassengerTransport
    address = "120363000000000001@g.us"
    refused_address = "+4915100000000"
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}
    takes_key = True
    longest_wait = 60.0
    answers = {
        Scenario.RATE_LIMITS: failure(429, "rate:limit"),
        Scenario.NOT_CONNECTED: failure(503, "device:offline"),
        Scenario.BLOCKED: failure(401, "auth:invalid"),
        Scenario.REJECTS: failure(400, "phone:invalid"),
        Scenario.BREAKS_AFTER: failure(500, "internal"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.device: dict[str, Any] = {"status": "operative", "session": {"status": "online"}}
        self.groups = [{"wid": f"12036300{n:04}@g.us", "name": f"Group {n}"} for n in range(3)]

    def credentials_on(self, port: int) -> dict[str, str]:
        return {
            "base_url": f"http://127.0.0.1:{port}",
            "token": SECRET,
            "device": DEVICE,
            "webhook_secret": WEBHOOK_SECRET,
        }

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "token": f"{SECRET}-but-another"}

    def check_secret(self, request: web.Request) -> None:
        if not same_secret(request.headers.get("Token"), SECRET):
            raise RefusedError(self.answers[Scenario.BLOCKED])

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.post("/v1/messages", self.send),
            web.post("/v1/files", self.upload),
            web.post("/v1/numbers/exists", self.exists),
            web.get("/v1/devices/{device}", self.show_device),
            web.get("/v1/devices/{device}/groups", self.list_groups),
        ]

    async def send(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, MESSAGE)
        assert ("phone" in body) != ("group" in body)
        address, handle = body.get("phone") or body["group"], body.get("media", {}).get("file", "")
        if "secret" in address:
            raise RefusedError(failure(400, "phone:invalid", f"{address} is no phone number"))
        if handle and handle not in self.files:
            raise RefusedError(failure(404, "file:missing"))
        received = Received(
            address=address,
            text=body["message"],
            chars=len(body["message"]),
            key=body["reference"],
            media=handle,
        )
        sent = {"id": f"msg_{len(self.messages)}", "status": "queued", "reference": body["reference"]}
        return await self.take(request, received, Reply(status=201, body=sent))

    async def upload(self, request: web.Request) -> web.StreamResponse:
        fields, file, content = await self.form(request)
        assert (fields, file.name) == ({}, "file")
        assert file.filename in {"Fête été.png", "aX-Evil: 1.png"}
        handle = hashlib.sha256(content).hexdigest()[:24]
        if handle in self.files:
            known = {"status": 409, "message": "The file exists", "meta": {"file": handle}}
            return web.json_response(known, status=409)
        return await self.keep(request, handle, content, Reply(status=201, body=[{"id": handle}]))

    async def exists(self, request: web.Request) -> web.StreamResponse:
        body = await self.checked(request, {"phone": re.compile(r"\+[1-9][0-9]+")})
        return web.json_response({"exists": body["phone"] == "+4915112345678"})

    async def show_device(self, request: web.Request) -> web.StreamResponse:
        assert request.match_info["device"] == DEVICE
        return web.json_response({"id": DEVICE, **self.device})

    async def list_groups(self, request: web.Request) -> web.StreamResponse:
        self.check(dict(request.query), {"size": re.compile(r"\d+"), "page": re.compile(r"\d+")}, "query")
        size = int(request.query["size"])
        first = size * int(request.query["page"])
        return web.json_response(self.groups[first : first + size])


class TestWassenger(TransportContract, HandleContract, GroupContract, AnswerContract):
    service = Wassenger
    table = (
        Said(reply=failure(429), means=RateLimited, after=60.0, words="It says why"),
        Said(reply=Reply(status=429, headers={"Retry-After": "5"}), means=RateLimited, after=5.0),
        Said(reply=failure(503, "device:offline"), means=NotConnected, after=20.0),
        Said(reply=failure(409, "device:conflict"), means=NotConnected, after=20.0),
        Said(reply=failure(402), means=AccountBlocked),
        Said(reply=failure(401), means=AccountBlocked),
        Said(reply=failure(400, "phone:invalid"), means=Rejected, code="phone:invalid", words="It says why"),
        Said(reply=failure(500), means=Unknown),
        Said(reply=Reply(status=200, body={"id": "1"}), means=Sent),
        Said(reply=Reply(status=200, body={"status": "queued"}), means=Unknown, words="cannot be read"),
    )

    async def test_a_person_is_written_to_by_phone(
        self, transport: WassengerTransport, harness: Wassenger
    ) -> None:
        await transport.send(Message(address="+4915112345678", kind="text", text="Hi"), "k")
        assert harness.messages[0].address == "+4915112345678"

    async def test_a_file_that_it_has_already_keeps_its_handle(
        self, transport: WassengerTransport, harness: Wassenger
    ) -> None:
        first, second = [await transport.upload(photo()) for _ in range(2)]
        assert isinstance(first, Uploaded)
        assert first == second
        assert harness.uploads() == 1

    async def test_groups_come_page_by_page(self, transport: WassengerTransport, harness: Wassenger) -> None:
        harness.groups = [{"wid": f"{n}@g.us", "name": f"G{n}"} for n in range(230)]
        assert len([contact async for contact in transport.recipients()]) == 230
        assert len(harness.asked) == 3

    async def test_a_number_can_be_checked(self, transport: WassengerTransport) -> None:
        assert await transport.check_number("+4915112345678")
        assert not await transport.check_number("+4915100000000")

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ({"status": "operative", "session": {"status": "online"}}, AccountState.WORKING),
            ({"status": "operative", "session": {"status": "offline"}}, AccountState.STOPPED),
            ({"status": "operative", "session": {"status": "new"}}, AccountState.PAIRING),
            ({"status": "ready"}, AccountState.WORKING),
            ({"status": "disabled"}, AccountState.STOPPED),
            ({"status": "banned"}, AccountState.BLOCKED),
        ],
    )
    async def test_its_states(
        self, transport: WassengerTransport, harness: Wassenger, told: dict[str, Any], state: AccountState
    ) -> None:
        harness.device = told
        assert await transport.status() is state


AT = datetime(2026, 11, 18, 11, 59, tzinfo=UTC)
WRITTEN = {
    "id": "in_1",
    "chat": "4915112345678@c.us",
    "from": "4915112345678",
    "fromMe": False,
    "body": "Yes",
    "timestamp": AT.isoformat().replace("+00:00", "Z"),
}


def report(event: str, data: Any, event_id: str = "evt_1") -> dict[str, Any]:
    return {"id": event_id, "event": event, "device": DEVICE, "data": data}


def inbound(told: str = "in_1", *, chat: str = "+4915112345678") -> Inbound:
    return Inbound(
        event_id=f"message:{told}", provider_id=told, sender="+4915112345678", chat=chat, text="Yes", at=AT
    )


def receipt(state: ReceiptState, reason: str = "") -> Receipt:
    return Receipt(event_id=f"receipt:msg_1:{state}", provider_id="msg_1", state=state, at=NOW, reason=reason)


class TestWassengerWebhooks(WebhookContract):
    service = Wassenger
    fresh_for = timedelta(hours=25)
    reports = (
        Reported(body=report("message:in:new", {"message": WRITTEN}), events=[inbound()]),
        Reported(
            body=report(
                "message:in:new",
                {**WRITTEN, "id": "in_2", "chat": {"id": "120363@g.us"}, "fromNumber": "+4915112345678"},
            ),
            events=[inbound("in_2", chat="120363@g.us")],
        ),
        Reported(body=report("message:in:new", {"message": {**WRITTEN, "fromMe": True}}), events=[]),
        Reported(body=report("message:in:new", {**WRITTEN, "chat": {"id": "status@broadcast"}}), events=[]),
        Reported(body=report("message:out:sent", {"id": "msg_1"}), events=[receipt(ReceiptState.SENT)]),
        Reported(
            body=report("message:out:delivered", {"message": {"id": "msg_1"}}),
            events=[receipt(ReceiptState.DELIVERED)],
        ),
        Reported(body=report("message:out:read", {"id": "msg_1"}), events=[receipt(ReceiptState.READ)]),
        Reported(
            body=report("message:out:failed", {"id": "msg_1", "failureReason": "blocked"}),
            events=[receipt(ReceiptState.FAILED, "blocked")],
        ),
        Reported(
            body=report("device:status:changed", {"session": {"status": "offline"}}, "evt_2"),
            events=[SessionChanged(event_id="evt_2", state=AccountState.STOPPED, at=NOW)],
        ),
        Reported(body=report("chat:assigned", {}), events=[]),
    )
    no_replies = {
        "our own": report("message:in:new", {"message": {**WRITTEN, "fromMe": True}}),
        "our own, by its flow": report("message:in:new", {"message": {**WRITTEN, "flow": "outbound"}}),
        "a status": report("message:in:new", {**WRITTEN, "chat": {"id": "status@broadcast"}}),
        "a channel": report("message:in:new", {**WRITTEN, "chat": {"id": "120363144038483540@newsletter"}}),
        "a reaction": report("message:in:new", {**WRITTEN, "type": "reaction"}),
    }
    words = {
        "a text": report("message:in:new", {"message": {**WRITTEN, "body": "STOP"}}),
        "a picture": report("message:in:new", {**WRITTEN, "body": "", "media": {"caption": "STOP"}}),
    }
    for_others = {**report("message:in:new", {"message": WRITTEN}), "device": "another"}

    def body(self, report: Mapping[str, Any], made_at: datetime) -> bytes:
        return json.dumps({"createdAt": made_at.isoformat()} | dict(report)).encode()

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {"x-wassenger-signature": f"sha256={signature}"}

    def test_without_a_secret_nothing_is_believed(self, harness: Wassenger) -> None:
        reader = WassengerTransport({**harness.credentials(), "webhook_secret": ""}, None)
        request = self.request(self.reports[0].body)
        for headers in (request.headers, self.headers(request.body, "", NOW)):
            with pytest.raises(WebhookRefusedError):
                reader.parse_webhook(replace(request, headers=headers))
