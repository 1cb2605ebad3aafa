"""Small faithful services over HTTP, in the test's own event loop.

A subclass knows its service's addresses and the shape of each request; what it is told is checked field by
field, and a test fails if anything did not fit. What it answers when it misbehaves is a table.
"""

import asyncio
import hmac
import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from delivery.outcomes import NotConnected, Outcome, RateLimited, Rejected, Sent, TryAgain, Unknown
from delivery.transports.base import Message, Transport
from tests.delivery.transports.contract import Stage
from tests.delivery.transports.harness import Harness, Received, Scenario
from tests.delivery.transports.shapes import Shape, misfits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: JSON, or the bytes as they are."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        if isinstance(self.body, bytes):
            return web.Response(status=self.status, body=self.body, headers=self.headers)
        return web.json_response(self.body, status=self.status, headers=self.headers)


class RefusedError(Exception):
    """The service says no, for a reason of its own."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Gateway(Harness):
    """The service: `routes` are its addresses, `answers` what it says when it misbehaves."""

    answers: ClassVar[Mapping[Scenario, Reply]]
    misfit_status: ClassVar[int] = 400

    def __init__(self) -> None:
        self.scenario: Scenario | None = None
        self.told_to_say: Reply | None = None
        self.messages: list[Received] = []
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        self.asked: list[tuple[str, str]] = []  # method and address of every request
        self._over = asyncio.Event()

    @abstractmethod
    def routes(self) -> Iterable[web.RouteDef]:
        """Each handler returns a Response, mostly by way of `take`, `keep` or `Reply`."""

    @abstractmethod
    def check_secret(self, request: web.Request) -> None:
        """Raises RefusedError if the request does not carry the account's secret."""

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._answer], client_max_size=200 * 2**20)
        app.router.add_routes(self.routes())
        self._server = TestServer(app, host="127.0.0.1")
        await self._server.start_server(access_log=None)  # addresses are none of our log's business
        return self

    async def __aexit__(self, *error: object) -> None:
        self._over.set()
        await self._server.close()
        assert self.problems == []

    @property
    def port(self) -> int:
        return self._server.port or 0

    def credentials(self) -> dict[str, str]:
        return self.credentials_on(self.port)

    def enter(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def say(self, reply: Reply) -> None:
        """The answer to every message from now on; none is delivered."""
        self.told_to_say = reply

    def received(self) -> list[Received]:
        return self.messages

    def uploads(self) -> int:
        return len(self.files)

    # For handlers

    async def checked(self, request: web.Request, shape: Shape) -> dict[str, Any]:
        """The JSON object in the request, after a look at every field."""
        assert request.content_type == "application/json", request.content_type
        body: dict[str, Any] = json.loads(await request.read())
        self.check(body, shape)
        return body

    async def form(self, request: web.Request) -> tuple[dict[str, str], web.FileField, bytes]:
        """The fields of a form, and the one file in it with its content."""
        form = await request.post()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        [file] = [value for value in form.values() if isinstance(value, web.FileField)]
        with file.file:
            return fields, file, file.file.read()

    def check_without_body(self, request: web.Request) -> None:
        if request.body_exists:
            self.problems.append(f"{request.method} {request.path} has a body")

    def check(self, value: object, shape: Shape, at: str = "body") -> None:
        wrong = misfits(value, shape, at)
        self.problems += wrong
        if wrong:
            raise RefusedError(Reply(status=self.misfit_status, body={"message": "; ".join(wrong)}))

    async def take(
        self, request: web.Request, received: Received, sent: Reply, *, once_by_key: bool = False
    ) -> web.StreamResponse:
        """Deliver the message and answer `sent`, or do what the scenario says."""
        self._refuse(received)
        if not (once_by_key and received.key in {each.key for each in self.messages}):
            self.messages.append(received)
        return await self._say(request, sent)

    async def keep(
        self, request: web.Request, handle: str, content: bytes, kept: Reply
    ) -> web.StreamResponse:
        """Keep the file and answer `kept`, or do what the scenario says."""
        self._refuse(None)
        self.files[handle] = content
        return await self._say(request, kept)

    def _refuse(self, received: Received | None) -> None:
        if self.told_to_say is not None:
            raise RefusedError(self.told_to_say)
        refused = {Scenario.NOT_CONNECTED, Scenario.REFUSES_FOR_NOW}
        if self.messages:
            refused.add(Scenario.RATE_LIMITS)
        if received is not None and received.address == self.refused_address:
            refused.add(Scenario.REJECTS)
        if self.scenario in refused:
            raise RefusedError(self.answers[self.scenario])

    async def _say(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        match self.scenario:
            case Scenario.HANGS:
                await self._over.wait()
            case Scenario.CUTS:
                return await _cut(request)
            case Scenario.GARBAGE:
                return web.Response(status=reply.status, text="<html>Welcome to nginx!</html>")
            case Scenario.BREAKS_AFTER:
                return self.answers[Scenario.BREAKS_AFTER].response()
        return reply.response()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        if request.method in {"GET", "DELETE"}:
            self.check_without_body(request)
        try:
            self.check_secret(request)
            if self.scenario is Scenario.BLOCKED:
                return self.answers[Scenario.BLOCKED].response()
            return await handler(request)
        except RefusedError as refused:
            return refused.reply.response()
        except web.HTTPException as error:
            self.problems.append(f"{request.method} {request.path}: {error.status}")
            raise
        except Exception as error:
            self.problems.append(f"{request.method} {request.path}: {error!r}")
            raise


async def _cut(request: web.Request) -> web.StreamResponse:
    """The beginning of an answer, and then nothing."""
    response = web.StreamResponse(status=200, headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"id": "tr')
    assert request.transport is not None
    request.transport.close()
    return response


def same_secret(told: str | None, secret: str) -> bool:
    return hmac.compare_digest((told or "").encode(), secret.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One row of a kind's table of answers: what is said, and what it means."""

    reply: Reply
    means: type[Outcome]
    after: float | None = None
    code: str = ""
    words: str = ""  # what its reason has among others

    def __str__(self) -> str:
        return f"{self.reply.status} {self.code or self.words} is {self.means.__name__}"


class AnswerContract(Stage):
    """Every answer that a kind knows, in a table."""

    table: ClassVar[Sequence[Said]]

    def tables(self) -> dict[str, Sequence[object]]:
        return {**super().tables(), "said": self.table}

    async def test_a_yes_with_an_error_inside_is_in_doubt(
        self, transport: Transport, harness: Gateway, text: Message
    ) -> None:
        error = {"code": 1, "message": "no", "errors": ["no"]}
        bodies: list[Any] = [
            {"error": error, "success": False},
            {"error": "no", "message": "no"},
            error,
            [],
            None,
        ]
        for body in bodies:
            harness.say(Reply(status=200, body=body))
            assert isinstance(await transport.send(text, "k"), Unknown)

    async def test_words_that_no_database_takes_are_mended(
        self, transport: Transport, harness: Gateway, text: Message
    ) -> None:
        odd = "half \ud83d, none \x00"
        harness.say(Reply(status=418, body={"error": odd, "message": odd, "errors": [{"message": odd}]}))
        outcome = await transport.send(text, "k")
        assert "\x00" not in str(outcome)
        str(outcome).encode()

    async def test_what_each_answer_means(
        self, transport: Transport, harness: Gateway, text: Message, said: Said
    ) -> None:
        harness.say(said.reply)
        outcome = await transport.send(text, "k")

        assert type(outcome) is said.means
        assert isinstance(outcome, Sent) or said.words in outcome.reason
        if isinstance(outcome, RateLimited | NotConnected | TryAgain):
            assert outcome.after == said.after
        if isinstance(outcome, Rejected):
            assert outcome.code == said.code


async def fetched(url: str) -> bytes:
    """Return the file at an address, as a gateway fetches it; raise OSError, with the address in its text."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            answer.raise_for_status()
            return await answer.read()
    except aiohttp.ClientError as error:
        raise OSError(f"Failed to fetch stream from {url}") from error
