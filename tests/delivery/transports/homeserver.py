"""A user of a real homeserver, behind a proxy that spoils answers on their way back."""

import asyncio
import io
import json
from typing import Any, Self
from urllib.parse import quote, unquote
from uuid import uuid4

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from delivery.transports.matrix.send import MatrixTransport
from tests.delivery.transports.harness import NO_SESSION, SECRET, Harness, Received, Scenario
from tests.delivery.transports.synapse import DOMAIN, Synapse

CLIENT = "/_matrix/client/v3"


class Homeserver(Harness):
    kind = MatrixTransport
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}  # it has no word for that
    refused_address = f"!not-joined:{DOMAIN}"
    takes_key = True
    means = NO_SESSION
    longest_wait = 10

    def __init__(self, synapse: Synapse) -> None:
        self.synapse = synapse
        self.localpart = f"user-{uuid4().hex[:10]}"
        synapse.make_user(self.localpart, SECRET)
        self.user_id = f"@{self.localpart}:{DOMAIN}"
        self.token = synapse.log_in(self.localpart, SECRET)
        synapse.limit(self.user_id, per_second=0, burst=0)
        self.address = self.make_room("Grüße 👋🏽")  # type: ignore[misc]  # one of its own for each test
        self.scenario: Scenario | None = None
        self.logins = 0
        self.asked: list[str] = []  # paths, in their order
        self._uploads = 0
        self._keys: dict[str, str] = {}
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**25)
        app.router.add_route("*", "/{rest:.*}", self._pass_on)
        self._session = aiohttp.ClientSession()
        self._server = TestServer(app, host="127.0.0.1")
        await self._server.start_server(access_log=None)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._over.set()
        await self._server.close()
        await self._session.close()

    def credentials(self) -> dict[str, str]:
        return self.credentials_on(self._server.port or 0)

    def credentials_on(self, port: int) -> dict[str, str]:
        return {"base_url": f"http://127.0.0.1:{port}", "user": self.user_id, "password": SECRET}

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "password": f"{SECRET}-but-another"}

    def enter(self, scenario: Scenario) -> None:
        self.scenario = scenario
        if scenario is Scenario.RATE_LIMITS:
            self.synapse.limit(self.user_id, per_second=1, burst=1)
        if scenario is Scenario.BLOCKED:
            self.synapse.deactivate(self.user_id)

    def make_room(
        self, name: str = "", *, alias: str = "", encrypted: bool = False, space: bool = False
    ) -> str:
        told: dict[str, Any] = {"name": name} if name else {}
        if encrypted:
            told["initial_state"] = [
                {
                    "type": "m.room.encryption",
                    "state_key": "",
                    "content": {"algorithm": "m.megolm.v1.aes-sha2"},
                }
            ]
        if space:
            told["creation_content"] = {"type": "m.space"}
        if alias:
            told["room_alias_name"] = f"{alias}-{self.localpart}"
        return str(self.ask("POST", "createRoom", told)["room_id"])

    def invite(self, friend: "Homeserver") -> None:
        room = quote(self.address)
        self.ask("POST", f"rooms/{room}/invite", {"user_id": friend.user_id})
        friend.ask("POST", f"rooms/{room}/join", {})

    def encrypt(self, room: str) -> None:
        """Switch encryption on, as a client does."""
        path = f"rooms/{quote(room)}/state/m.room.encryption"
        self.ask("PUT", path, {"algorithm": "m.megolm.v1.aes-sha2"})

    def say(self, room: str, words: str, **more: object) -> str:
        content = {"msgtype": "m.text", "body": words, **more}
        path = f"rooms/{quote(room)}/send/m.room.message/{uuid4().hex}"
        return str(self.ask("PUT", path, content)["event_id"])

    def contents(self) -> list[dict[str, str]]:
        return [event["content"] for event in self._messages()]

    def received(self) -> list[Received]:
        return [self._received(event) for event in self._messages()]

    def ask(self, method: str, path: str, told: object = None) -> Any:
        """Past the proxy, as the user by another device."""
        return self.synapse.ask(method, f"{CLIENT}/{path}", told, token=self.token)

    def _messages(self) -> list[dict[str, Any]]:
        path = f"/_synapse/admin/v1/rooms/{quote(self.address)}/messages?dir=f&limit=100"
        events = self.synapse.ask("GET", path, token=self.synapse.admin_token)["chunk"]
        return [event for event in events if event["type"] == "m.room.message"]

    def uploads(self) -> int:
        return self._uploads

    def _received(self, event: dict[str, Any]) -> Received:
        content = event["content"]
        return Received(
            address=self.address,
            text=content["body"],
            chars=len(content["body"]),
            key=self._keys.get(str(event["event_id"]), ""),
            media=content.get("url", ""),
        )

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        sends, uploads = "/send/" in request.path, request.path.endswith("/upload")
        if self.scenario is Scenario.NOT_CONNECTED and sends:
            return web.Response(status=503, text="no workers")
        self.asked.append(request.path)
        self.logins += request.path.endswith("/login")
        answer = await self._asked(request)
        if sends and answer.status == 200:
            key = unquote(request.raw_path.rpartition("/")[2])
            self._keys.setdefault(_event_id(answer), key)
        self._uploads += uploads and answer.status == 200
        return await self._spoil(request, answer) if sends or uploads else answer

    async def _asked(self, request: web.Request) -> web.Response:
        url = f"http://127.0.0.1:{self.synapse.port}{request.raw_path}"
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Content-Type")
            if name in request.headers
        }
        async with self._session.request(
            request.method,
            URL(url, encoded=True),
            data=io.BytesIO(await request.read()),
            headers=headers,
        ) as got:
            passed = {name: got.headers[name] for name in ("Retry-After",) if name in got.headers}
            return web.Response(
                status=got.status, body=await got.read(), content_type=got.content_type, headers=passed
            )

    async def _spoil(self, request: web.Request, answer: web.Response) -> web.StreamResponse:
        match self.scenario:
            case Scenario.HANGS:
                await self._over.wait()
            case Scenario.GARBAGE:
                return web.Response(text="<html>Welcome to nginx!</html>")
            case Scenario.BREAKS_AFTER:
                return web.Response(status=502, text="Bad Gateway")
            case Scenario.CUTS:
                assert request.transport is not None
                response = web.StreamResponse(headers={"Content-Length": "1000"})
                await response.prepare(request)
                await response.write(b'{"event_id": "$tr')
                request.transport.close()
                return response
        return answer


def _event_id(answer: web.Response) -> str:
    assert isinstance(answer.body, bytes)
    return str(json.loads(answer.body)["event_id"])
