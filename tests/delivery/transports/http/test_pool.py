"""Short messages: one connection after another's message, one look, and one piece on the wire."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from yarl import URL

from delivery.outcomes import Unknown, Unreachable
from delivery.transports.http import pool
from delivery.transports.http.exchange import (
    MAX_AT_ONCE,
    Answer,
    Connector,
    Request,
    Unanswered,
    exchange,
    in_one_piece,
    json_request,
    open_session,
)
from delivery.transports.leaving import HeldBackError, looking_with

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Notes which connection carried what, and says the next of its answers."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.arrived: list[tuple[int, Any]] = []  # number of the connection, and the message
        self.connections: list[asyncio.StreamWriter] = []
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        number = len(self.connections)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.arrived.append((number, json.loads(await reader.readexactly(length))))
                answer = self.answers.pop(0) if self.answers else FINE
                writer.write(answer)
                await writer.drain()
                if b"until the end" in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.gone.set()
            writer.close()


class Scene:
    def __init__(self, server: Server, session: aiohttp.ClientSession, url: URL) -> None:
        self.server, self.session, self.url = server, session, url

    async def send(self, message: Any) -> Answer | Unanswered:
        request = json_request("POST", self.url / "send", headers={}, payload=message)
        return await exchange(self.session, request, connect=1, total=5)

    def kept(self) -> int:
        """Return the number of connections that wait for the next message."""
        assert isinstance(self.session.connector, Connector)
        return sum(len(idle) for idle in self.session.connector.messages._idle.values())


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    server = Server()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(server.serve(reader, writer)))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as listening, open_session() as session:
        yield Scene(server, session, URL(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the server does not tell
            await asyncio.sleep(0.005)


async def test_messages_follow_each_other_on_one_connection() -> None:
    async with scene() as here:
        for number in range(3):
            assert isinstance(await here.send(number), Answer)
    assert here.server.arrived == [(1, 0), (1, 1), (1, 2)]


async def test_messages_at_the_same_time_have_a_connection_each() -> None:
    async with scene() as here:
        answers = await asyncio.gather(*(here.send(number) for number in range(20)))
        assert all(isinstance(answer, Answer) for answer in answers)
        assert here.kept() == len({connection for connection, _ in here.server.arrived}) == 20
    assert sorted(message for _, message in here.server.arrived) == list(range(20))


async def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEEP_ALIVE", 0.0)
    async with scene() as here:
        for number in range(2):
            assert isinstance(await here.send(number), Answer)
    assert here.server.arrived == [(1, 0), (2, 1)]


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEEP_ALIVE", 0.01)
    monkeypatch.setattr(pool, "SWEEP", 0.02)
    async with scene() as here:
        await here.send("hello")
        async with asyncio.timeout(10):
            await here.server.gone.wait()
        assert here.kept() == 0


async def test_what_nobody_asked_for_closes_a_connection() -> None:
    async with scene() as here:
        await here.send(1)
        here.server.connections[0].write(b"HTTP/1.1 408 Too slow\r\nContent-Length: 0\r\n\r\n")
        async with asyncio.timeout(10):
            await here.server.gone.wait()
        assert isinstance(answer := await here.send(2), Answer)
        assert answer.status == 200
    assert here.server.arrived == [(1, 1), (2, 2)]


async def test_an_answer_too_many_is_not_taken_for_the_next() -> None:
    async with scene() as here:
        here.server.answers = [FINE + b"HTTP/1.1 404 Late\r\nContent-Length: 1\r\nX: y\r\n\r\nz"]
        assert isinstance(answer := await here.send(1), Answer)
        assert (answer.status, answer.body) == (200, b"{}")
        assert isinstance(answer := await here.send(2), Answer)
        assert answer.status == 200
    assert here.server.arrived == [(1, 1), (2, 2)]


async def test_a_connection_that_closes_while_the_last_look_is_under_way_is_replaced() -> None:
    looks = 0
    async with scene() as here:
        await here.send("before")

        async def look() -> None:
            nonlocal looks
            looks += 1
            if looks == 1:
                here.server.connections[0].close()
                await asyncio.sleep(0.1)

        with looking_with(look):
            assert isinstance(await here.send("message"), Answer)
    assert looks == 2
    assert here.server.arrived == [(1, "before"), (2, "message")]


async def test_a_gateway_that_closes_each_connection_at_once_got_nothing() -> None:
    """As a proxy without anything behind it does. Nothing was written, so nothing is in doubt, and nobody waits."""

    async def slam(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def look() -> None:
        await asyncio.sleep(0.05)

    async with await asyncio.start_server(slam, "127.0.0.1", 0) as listening, open_session() as session:
        url = URL(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/send")
        request = json_request("POST", url, headers={}, payload="message")
        with looking_with(look):
            async with asyncio.timeout(3):
                outcome = await exchange(session, request, connect=1, total=30)
    assert isinstance(outcome, Unreachable)


RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"gzip", gzip.compress(b'{"i', mtime=0) + gzip.compress(b'd": 1}', mtime=0)),
        (b"gzip", gzip.compress(b'{"id": 1}', mtime=0) + b"\0\0 padding"),
        (b"deflate", zlib.compress(b'{"id": 1}')),
        (b"deflate", RAW.compress(b'{"id": 1}') + RAW.flush()),
    ],
    ids=["gzip in two parts", "gzip with padding", "deflate", "raw deflate"],
)
async def test_a_packed_answer_is_unpacked_however_it_was_packed(coding: bytes, body: bytes) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding, len(body))
    async with scene() as here:
        here.server.answers.append(head + body)
        answer = await here.send("message")
    assert isinstance(answer, Answer)
    assert answer.json() == {"id": 1}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 %s\r\nRetry-After: 7\r\nContent-Length: 200\r\n\r\n{until the end",
        b"HTTP/1.1 %s\r\nRetry-After: 7\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 %s\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nuntil the end",
    ],
)
async def test_a_service_that_took_nothing_is_believed_though_its_words_are_cut_off(answer: bytes) -> None:
    for status in (b"429 Too Many", b"503 Unavailable", b"201 Created", b"400 Bad", b"500 Broken"):
        async with scene() as here:
            here.server.answers.append(answer % status)
            found = await here.send("message")
        if status[:3] in {b"429", b"503"}:
            assert isinstance(found, Answer)
            assert (found.status, found.headers["Retry-After"]) == (int(status[:3]), "7")
        else:
            assert isinstance(found, Unknown)


async def test_what_follows_an_answer_in_pieces_changes_nothing_of_it() -> None:
    async with scene() as here:
        here.server.answers.append(
            b"HTTP/1.1 429 Slow\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n2\r\n{}\r\n0\r\n"
            b"Content-Encoding: gzip\r\nRetry-After: 9999\r\n\r\n"
        )
        answer = await here.send("message")
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body, answer.headers["Retry-After"]) == (429, b"{}", "7")
        assert "Content-Encoding" not in answer.headers


async def test_a_message_that_is_held_back_leaves_nothing_on_its_connection() -> None:
    async with scene() as here:
        await here.send("before")

        async def look() -> None:
            raise HeldBackError("its window closes")

        with looking_with(look), pytest.raises(HeldBackError):
            await here.send("held back")
        await here.send("after")
    assert here.server.arrived == [(1, "before"), (1, "after")]


async def test_a_message_that_may_have_arrived_is_not_sent_again() -> None:
    async with scene() as here:
        await here.send("before")
        here.server.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nuntil the end"[:-9]]
        sending = asyncio.create_task(here.send("once"))
        await until(lambda: len(here.server.arrived) == 2)
        here.server.connections[0].close()
        assert isinstance(await sending, Unknown)
    assert here.server.arrived == [(1, "before"), (1, "once")]


async def test_whoever_stops_waiting_closes_the_connection() -> None:
    async with scene() as here:
        here.server.answers = [b"HTTP/1.1 200"]
        sending = asyncio.create_task(here.send("once"))
        await until(lambda: bool(here.server.arrived))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        async with asyncio.timeout(10):
            await here.server.gone.wait()
        assert here.kept() == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + FINE,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + FINE,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
        b"HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
        FINE + b"and nonsense",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nX: until the end\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nX: until the end\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: GZIP\r\ncontent-length: %d\r\n\r\n%s"
        % (len(gzip.compress(b"{}", mtime=0)), gzip.compress(b"{}", mtime=0)),
    ],
)
async def test_an_answer_may_have_any_form_of_http(answer: bytes) -> None:
    async with scene() as here:
        here.server.answers = [answer]
        found = await here.send(1)
        assert isinstance(found, Answer)
        assert (found.status, found.body) == (200, b"{}")
        assert isinstance(await here.send(2), Answer)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Encoding: gzip\r\n\r\n",
    ],
)
async def test_an_answer_may_have_no_body(answer: bytes) -> None:
    async with scene() as here:
        here.server.answers = [answer]
        assert isinstance(found := await here.send(1), Answer)
        assert (found.ok, found.body) == (True, b"")


@pytest.mark.parametrize(
    "answer", [b"220 hello\r\n", b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"]
)
async def test_another_protocol_leaves_the_message_in_doubt(answer: bytes) -> None:
    async with scene() as here:
        here.server.answers = [answer]
        assert isinstance(await here.send(1), Unknown)
        assert here.kept() == 0


async def test_headers_are_read_whatever_their_case() -> None:
    async with scene() as here:
        here.server.answers = [b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n"]
        assert isinstance(answer := await here.send(1), Answer)
        assert answer.headers["Retry-After"] == "7"


async def test_nobody_listening_leaves_nothing() -> None:
    async with open_session() as session:
        request = json_request("POST", URL("http://127.0.0.1:1/"), headers={}, payload=1)
        assert isinstance(await exchange(session, request, connect=1, total=2), Unreachable)


def test_a_header_cannot_hold_another() -> None:
    request = Request(method="POST", url=URL("http://a/"), headers={"X-Key": "a\r\nHost: b"}, body=b"")
    with pytest.raises(ValueError, match="line break"):
        in_one_piece(request)


def test_the_head_names_host_length_and_path_as_they_are_written() -> None:
    url = URL("http://[::1]:8080/a%20b/c?d=e%26f#g")
    written = in_one_piece(Request(method="POST", url=url, headers={"X-Key": "grün"}, body=b"{}"))
    head, _, body = written.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /a%20b/c?d=e%26f HTTP/1.1"
    assert {"Host: [::1]:8080", "X-Key: grün", "Content-Length: 2"} <= set(lines)
    assert body == b"{}"


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="GET", url=URL("http://a/")),
        Request(method="POST", url=URL("http://a/")),
        Request(method="POST", url=URL("http://a/"), body=b"x" * (MAX_AT_ONCE + 1)),
        Request(method="POST", url=URL("http://me:secret@a/"), body=b"{}"),
    ],
)
def test_all_else_is_left_to_aiohttp(request_: Request) -> None:
    assert in_one_piece(request_) == b""
