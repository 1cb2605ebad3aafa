"""Failures that a well-made service does not show: raw servers that break off, redirect or talk nonsense."""

import asyncio
import errno
import gzip
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import BinaryIO

import aiohttp
import pytest
from yarl import URL

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    Unknown,
    Unreachable,
)
from delivery.transports.base import AccountState, Capabilities, CredentialField, Media, Message, Timeouts
from delivery.transports.http.exchange import (
    STATUSES,
    Answer,
    Request,
    Unanswered,
    exchange,
    gateway_url,
    json_request,
    meaning,
    open_session,
    retry_after,
    without_answer,
)
from delivery.transports.http.files import form_request, json_request_with_file
from delivery.transports.http.transport import HttpTransport
from delivery.transports.leaving import HeldBackError, looking_with

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[URL]:
    """A raw server that leaves each connection to the handler, and closes it afterwards."""
    connections: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(take(reader, writer)))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


def says(raw: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()

    return handler


async def result(handler: Handler, *, total: float = 5.0) -> Answer | Unanswered:
    async with served(handler) as url, open_session() as session:
        request = json_request("POST", url / "send", headers={}, payload={"text": "hello"})
        return await exchange(session, request, connect=min(1.0, total / 2), total=total)


def in_doubt(answer: Answer | Unanswered, why: str) -> None:
    assert isinstance(answer, Unknown)
    assert answer.reason.startswith(why)


async def test_a_whole_answer_comes_back() -> None:
    answer = await result(says(b'HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{"id":"1"}'))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.ok, answer.json()) == (201, True, {"id": "1"})


@pytest.mark.parametrize(
    "raw",
    [
        b"",  # closed without a word
        b"HTTP/1.1 201 Cre",  # closed in the status line
        b"HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{",  # closed in the body
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",  # closed in a chunk
        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"220 mail.example.org ESMTP\r\n",  # another protocol
    ],
)
async def test_whatever_breaks_after_the_request_left_is_unknown(raw: bytes) -> None:
    assert isinstance(await result(says(raw)), Unknown)


async def test_an_answer_that_never_ends_is_unknown() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
        for _ in range(80):
            writer.write(b"x" * 2**16)
            await writer.drain()

    in_doubt(await result(handler), "the answer of the gateway was cut off, 127.0.0.1:")


async def test_an_answer_that_unpacks_to_gigabytes_is_not_unpacked() -> None:
    packed = gzip.compress(bytes(2**26))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    in_doubt(await result(says(head + packed)), "the answer of the gateway was cut off, 127.0.0.1:")


async def test_an_answer_that_trickles_for_ever_is_given_up_in_time() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    in_doubt(await result(handler, total=0.3), "no answer within 0.3 s, 127.0.0.1:")


async def test_a_header_that_never_ends_is_not_read() -> None:
    assert isinstance(await result(says(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**20)), Unknown)


async def test_a_slow_answer_is_unknown_and_says_how_long_was_waited() -> None:
    async def handler(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    in_doubt(await result(handler, total=0.3), "no answer within 0.3 s, 127.0.0.1:")


async def test_a_redirect_is_not_followed() -> None:
    visits: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    answer = await result(handler)
    assert isinstance(answer, Answer)
    assert meaning(answer.status, STATUSES) is Unreachable
    assert len(visits) == 1


async def test_tls_to_a_server_that_has_none_leaves_nothing() -> None:
    async def handler(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Speak plainly\r\n\r\n")
        await writer.drain()

    async with served(handler) as url, open_session() as session:
        request = json_request("POST", url.with_scheme("https"), headers={}, payload={})
        assert isinstance(await exchange(session, request, connect=1, total=2), Unreachable)


async def test_a_cookie_of_one_account_is_not_sent_for_another() -> None:
    heads: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: who=first\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with served(handler) as url, open_session() as session:
        for _ in range(2):
            # A name, not a number: cookies of bare addresses are never kept.
            await exchange(session, Request(method="GET", url=url.with_host("localhost")), connect=1, total=2)
    assert len(heads) == 2
    assert b"cookie" not in heads[1].lower()


def connection_key() -> aiohttp.client_reqrep.ConnectionKey:
    return aiohttp.client_reqrep.ConnectionKey("gateway.test", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # nothing left
        (aiohttp.ClientConnectorDNSError(connection_key(), OSError(errno.ENOENT, "no name")), Unreachable),
        (aiohttp.ClientConnectorError(connection_key(), OSError(errno.ECONNREFUSED, "refused")), Unreachable),
        (aiohttp.ClientConnectorSSLError(connection_key(), OSError(1, "TLS")), Unreachable),
        (aiohttp.ServerFingerprintMismatch(b"a", b"b", "gateway.test", 443), Unreachable),
        (aiohttp.ConnectionTimeoutError(), Unreachable),
        (aiohttp.InvalidURL("http://"), Unreachable),
        # may have arrived
        (aiohttp.SocketTimeoutError(), Unknown),
        (TimeoutError(), Unknown),
        (aiohttp.ServerDisconnectedError(), Unknown),
        (aiohttp.ClientOSError(errno.EPIPE, "broken pipe"), Unknown),
        (aiohttp.ClientPayloadError(), Unknown),
        (ConnectionResetError(), Unknown),
        (aiohttp.ClientError(), Unknown),
    ],
)
def test_only_a_failure_to_connect_is_sure_that_nothing_left(error: Exception, kind: type) -> None:
    outcome = without_answer(error, connect=5, total=20)
    assert isinstance(outcome, kind)
    assert "gateway.test" not in outcome.reason


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Unreachable),  # the address is wrong, and was not followed
        (302, Unreachable),
        (307, Unreachable),
        (308, Unreachable),
        (303, Unknown),  # it was acted on, and the result is elsewhere
        (304, Unknown),
        (199, Unknown),
        (400, Rejected),
        (401, AccountBlocked),
        (402, AccountBlocked),
        (403, AccountBlocked),
        (404, Rejected),
        (407, AccountBlocked),
        (408, ServerError),
        (413, Rejected),
        (422, Rejected),
        (429, RateLimited),
        (500, Unknown),  # may have acted before it failed
        (502, Unknown),
        (503, ServerError),
        (504, Unknown),
        (599, Unknown),
    ],
)
def test_what_a_status_means(status: int, kind: type) -> None:
    assert meaning(status, STATUSES) is kind


def test_a_kind_may_read_a_status_in_its_own_way() -> None:
    assert meaning(422, {**STATUSES, 422: NotConnected}) is NotConnected


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("30", 30.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("-5", 0.0),
        ("999999999", 86_400.0),
        ("Wed, 18 Nov 2026 12:01:00 GMT", 60.0),
        ("Wed, 18 Nov 2026 12:01:00 -0000", 60.0),
        ("Wed, 18 Nov 2026 11:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("Wed, 99999999999 Nov 2026 12:01:00 GMT", None),
        ("Wed, 18 Nov 99999999999 12:01:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert retry_after(Answer(status=429, headers={"Retry-After": said}, body=b""), now=NOON) == seconds


def test_a_date_is_read_by_the_clock_of_the_server_that_named_it() -> None:
    headers = {"Retry-After": "Wed, 18 Nov 2026 15:00:10 GMT", "Date": "Wed, 18 Nov 2026 15:00:00 GMT"}
    assert retry_after(Answer(status=429, headers=headers, body=b""), now=NOON) == 10.0


def test_timeouts_must_tell_connecting_from_waiting() -> None:
    with pytest.raises(ValueError, match="connect"):
        Timeouts(connect=20, total=20)


def test_requests_and_answers_keep_to_themselves_what_they_hold() -> None:
    request = json_request("POST", URL("http://a/token-1"), headers={"X-Key": "token-1"}, payload="token-1")
    answer = Answer(status=200, headers={"Set-Cookie": "token-1"}, body=b"token-1")
    assert "token-1" not in repr(request) + repr(answer)


def test_a_base_address_may_have_a_path() -> None:
    assert (
        str(gateway_url("https://gw.example.org/v1", label="Address") / "api")
        == "https://gw.example.org/v1/api"
    )


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff", b"{", b'"text"'])
def test_a_body_without_an_object_is_an_empty_one(body: bytes) -> None:
    assert Answer(status=200, headers={}, body=body).json() == {}


class Parrot(HttpTransport):
    """A kind whose service repeats the secret in its failures."""

    kind = "parrot"
    label = "Parrot"
    default_capabilities = Capabilities()
    credential_fields = (
        CredentialField(name="url", label="URL"),
        CredentialField(name="token", label="Token", secret=True),
    )

    def build_message(self, message: Message, key: str) -> Request:
        return json_request(
            "POST", URL(self.credentials["url"]), headers={"X-Key": key}, payload=message.text
        )

    def parse_sent(self, answer: Answer) -> Outcome:
        return Sent()

    async def status(self) -> AccountState:
        return AccountState.WORKING


@pytest.mark.parametrize("status", [b"400 Bad", b"401 No", b"429 Slow", b"500 Oh", b"503 Off"])
async def test_a_secret_that_the_service_repeats_is_blotted_out(status: bytes) -> None:
    body = b'{"error": "token-1 is bad", "message": "wrong\\n\\n token-1' + b" very" * 99 + b'"}'
    handler = says(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    async with served(handler) as url, open_session() as session:
        parrot = Parrot({"url": str(url), "token": "token-1"}, session)
        outcome = await parrot.send(Message(address="a", kind="text", text="hello"), "k")
    assert "token-1" not in repr(outcome)
    assert "wrong ***" in repr(outcome)
    assert len(repr(outcome)) < 400


def test_a_message_has_media_exactly_when_it_is_media() -> None:
    with pytest.raises(ValueError, match="media"):
        Message(address="a", kind="media", text="no file")


# The last look


def _announced(head: bytes) -> int:
    found = re.search(rb"content-length: (\d+)", head.lower())
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(("words", "expected"), [(1, 1), (40_000, 2)])
async def test_a_request_that_may_have_arrived_is_not_sent_again_behind_the_engine_s_back(
    words: int, expected: int
) -> None:
    """aiohttp sends a PUT again by itself: then a look that refuses would say that nothing ever left.

    A short message goes without aiohttp, a long one does not.
    """
    arrived, looks = [], 0

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        arrived.append(await reader.readexactly(_announced(head)))  # and hangs up

    async def look() -> None:
        nonlocal looks
        looks += 1
        if arrived:
            raise HeldBackError("it may not be sent any more")

    async with served(handler) as url, open_session() as session:
        request = json_request("PUT", url / "send", headers={}, payload={"text": "hello" * words})
        with looking_with(look):
            in_doubt(
                await exchange(session, request, connect=1, total=5), "the gateway closed the connection"
            )
    assert (len(arrived), looks) == (1, expected)


async def test_a_question_is_asked_again_where_a_connection_was_closed_meanwhile() -> None:
    arrived = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.readuntil(b"\r\n\r\n"))
        if len(arrived) > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async with served(handler) as url, open_session() as session:
        answer = await exchange(session, Request(method="GET", url=url), connect=1, total=5)
    assert isinstance(answer, Answer)
    assert len(arrived) == 2


def _in_json(url: URL, file: BinaryIO) -> Request:
    return json_request_with_file(url, headers={}, payload=lambda content: {"file": content}, file=file)


def _in_a_form(url: URL, file: BinaryIO) -> Request:
    media = Media(sha256="", filename="film.mp4", content_type="video/mp4", open=lambda: file)
    return form_request(url, headers={}, fields={"to": "Anna"}, media=media, file=file)


def _alone(url: URL, file: BinaryIO) -> Request:
    return Request(method="POST", url=url, body=file)


def _as_text(url: URL, file: BinaryIO) -> Request:
    return json_request(
        "POST", url, headers={}, payload={"text": file.read(2**16).decode()}
    )  # too long for one piece


@pytest.mark.parametrize(
    ("build", "size"),
    [(build, size) for build in (_in_json, _in_a_form, _alone) for size in (7, 2**23)] + [(_as_text, 2**23)],
)
@pytest.mark.parametrize("refused", [True, False])
async def test_a_message_is_looked_at_again_before_its_end_however_long_it_took(
    build: Callable[[URL, BinaryIO], Request], size: int, refused: bool
) -> None:
    """The service acts on a whole request alone: without its last bytes nothing has left."""
    bodies: list[bytes] = []
    whole, looks = asyncio.Event(), 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.2)  # meanwhile the buffers of the network are full
        bodies.append(await reader.readexactly(_announced(head)))
        whole.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async def look() -> None:
        nonlocal looks
        looks += 1
        assert not whole.is_set()
        if looks > 1 and refused:
            raise HeldBackError("its window closes")

    async with served(handler) as url, open_session() as session:
        answer: Answer | Outcome | None = None
        # From Python 3.12 on the refusal comes out at once; before, the connection is closed, and the loop knows why.
        with looking_with(look), suppress(HeldBackError):
            answer = await exchange(session, build(url, io.BytesIO(b"x" * size)), connect=1, total=5)
        await asyncio.sleep(0.3)
    assert looks == 2
    if refused:
        assert answer is None or isinstance(answer, Unknown)
        assert bodies == []
    else:
        assert isinstance(answer, Answer)
        assert len(bodies[0]) >= min(size, 2**16)


@pytest.mark.parametrize("build", [_in_json, _in_a_form, _alone, _as_text])
async def test_a_file_whose_end_was_never_written_was_not_acted_on(
    build: Callable[[URL, BinaryIO], Request],
) -> None:
    """A proxy that allows less closes the connection in the middle; the file would end in doubt for everybody."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def look() -> None:
        return

    async with served(handler) as url, open_session() as session:
        with looking_with(look):
            outcome = await exchange(session, build(url, io.BytesIO(b"x" * 2**25)), connect=1, total=5)
    assert isinstance(outcome, ServerError if build is not _as_text else ServerError | Unknown)


async def test_a_file_that_was_written_whole_is_in_doubt_without_an_answer() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(_announced(head))
        writer.transport.abort()

    async def look() -> None:
        return

    async with served(handler) as url, open_session() as session:
        with looking_with(look):
            outcome = await exchange(session, _in_json(url, io.BytesIO(b"x" * 2**20)), connect=1, total=5)
    assert isinstance(outcome, Unknown)


async def test_a_file_without_a_look_leaves_as_it_is() -> None:
    async with (
        served(says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as url,
        open_session() as session,
    ):
        answer = await exchange(session, _alone(url, io.BytesIO(b"x")), connect=1, total=5)
    assert isinstance(answer, Answer)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (b"404 Not Found", b"<html><h1>404 Not Found</h1><hr>nginx</html>", Unreachable),
        (b"405 Not Allowed", b"", Unreachable),
        (b"404 Not Found", b'{"error": "nobody", "message": "There is no such recipient."}', Rejected),
        (b"400 Bad Request", b"<html>400</html>", Rejected),
    ],
)
async def test_a_web_server_that_stands_in_for_the_service_fails_no_recipient(
    status: bytes, body: bytes, kind: type[Outcome]
) -> None:
    handler = says(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    async with served(handler) as url, open_session() as session:
        parrot = Parrot({"url": str(url), "token": "token-1"}, session)
        outcome = await parrot.send(Message(address="a", kind="text", text="hello"), "k")
    assert type(outcome) is kind
