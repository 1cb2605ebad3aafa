"""One HTTP/1.1 connection to a gateway: writes a request in one piece, and reads its answer.

aiohttp takes most of its time for what a message does not need: bodies in pieces, cookies, redirects, proxies. A
message is a few hundred bytes that leave at once, right after the last look at it.
"""

import asyncio
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
import httptools
from multidict import CIMultiDict

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ANSWER_BYTES = 4 * 2**20
MAX_HEAD_BYTES = 64 * 2**10
NEVER_A_BODY = frozenset({204, 304})
# As aiohttp reads answers: a service that took a message is believed, though its headers are a little wrong.
LENIENCIES = {
    "lenient_headers": True,
    "lenient_optional_cr_before_lf": True,
    "lenient_spaces_after_chunk_size": True,
}
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
GZIP = b"\x1f\x8b"
# The service took nothing, whatever else it meant to say: the end of its words is not needed.
TOOK_NOTHING = frozenset({429, 503})


class UnreadableAnswerError(aiohttp.ClientError):
    """Raised where the gateway answers in something other than HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAnswer:
    """Status, headers and body of an answer."""

    status: int
    headers: "Mapping[str, str]"
    body: bytes


class Connection(asyncio.Protocol):
    """A connection that carries one request after another."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self.closed = False
        self.idle_since = 0.0
        self._reading: _Reading | None = None
        self._answer: asyncio.Future[WholeAnswer] | None = None

    async def ask(self, request: bytes, *, by: float) -> WholeAnswer:
        """Write the request at once, and return its answer; raise aiohttp.ClientError. One request at a time.

        Raise TimeoutError where there is no whole answer `by` a time of the loop. Whoever stops waiting closes the
        connection: nothing of the request leaves afterwards.
        """
        loop = asyncio.get_running_loop()
        self._reading = _Reading()
        self._answer = loop.create_future()
        late = loop.call_at(by, self._fail, TimeoutError())
        self._transport.write(request)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            late.cancel()
            self._answer = self._reading = None

    def close(self) -> None:
        """Close the connection at once, with whatever was not written yet."""
        self.closed = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this."""
        self._transport = transport  # type: ignore[assignment]  # of a stream

    def data_received(self, data: bytes) -> None:
        """Read a piece of the answer; asyncio calls this."""
        if self._reading is None or self._reading.whole:  # what nobody asked for
            self.close()
            return
        try:
            if self._reading.feed(data):
                self._finish(self._reading)
        except aiohttp.ClientError as error:
            self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        """End the answer that is under way; asyncio calls this."""
        self.closed = True
        if self._reading is None or self._reading.whole:
            return
        if self._reading.ends_with_connection and error is None:
            self._finish(self._reading)
        elif self._reading.begun:
            self._fail(aiohttp.ClientPayloadError("the answer was cut off"))
        elif isinstance(error, OSError):
            self._fail(aiohttp.ClientOSError(*error.args))
        else:
            self._fail(aiohttp.ServerDisconnectedError())

    def _finish(self, reading: "_Reading") -> None:
        if reading.ends:
            self.close()
        if self._answer is None or self._answer.done():
            return
        try:
            self._answer.set_result(reading.answer())
        except aiohttp.ClientError as error:
            self._fail(error)

    def _fail(self, error: aiohttp.ClientError | TimeoutError) -> None:
        self.close()
        if self._answer is None or self._answer.done():
            return
        if self._reading is not None and self._reading.took_nothing:
            self._answer.set_result(self._reading.head())
        else:
            self._answer.set_exception(error)


class _Reading:
    """An answer that is being read: httptools calls the methods that begin with `on_`."""

    def __init__(self) -> None:
        self.whole = self.begun = False
        self.ends = False  # the connection cannot carry another request
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(**LENIENCIES)
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._head = 0  # bytes before the body
        self._status = 0
        self._body = bytearray()

    def feed(self, data: bytes) -> bool:
        """Read a piece of the answer, and tell whether it is whole; raise aiohttp.ClientError."""
        if not self._status:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.whole:
                raise UnreadableAnswerError("the answer is not HTTP") from error
            self.ends = True
        if self.too_long:
            raise aiohttp.ClientPayloadError("the answer is too long")
        return self.whole

    @property
    def too_long(self) -> bool:
        return len(self._body) > MAX_ANSWER_BYTES or (not self._status and self._head > MAX_HEAD_BYTES)

    @property
    def ends_with_connection(self) -> bool:
        """Tell whether the end of the connection is the end of the answer."""
        announced = "Content-Length" in self._headers or "Transfer-Encoding" in self._headers
        return bool(self._status) and not announced

    @property
    def took_nothing(self) -> bool:
        return self._status in TOOK_NOTHING

    def head(self) -> WholeAnswer:
        """Return the answer without its body."""
        return WholeAnswer(status=self._status, headers=self._headers, body=b"")

    def answer(self) -> WholeAnswer:
        """Return the whole answer; raise aiohttp.ClientPayloadError where it cannot be unpacked."""
        packed = self._headers.get("Content-Encoding", "").lower() in {"gzip", "x-gzip", "deflate"}
        body = _unpacked(self._body) if packed and self._body else bytes(self._body)
        return WholeAnswer(status=self._status, headers=self._headers, body=body)

    def on_message_begin(self) -> None:
        self.begun = True
        self.ends = self.ends or self.whole  # a second answer, which nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:  # what follows a body in pieces (trailers) says nothing about it
            self._headers.add(name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        if self.whole:
            return
        status = self._parser.get_status_code()
        if status < 200:  # an interim answer: the real one follows
            self._headers.clear()
        else:
            self._status = status

    def on_body(self, piece: bytes) -> None:
        if not self.whole and not self.too_long:
            self._body += piece

    def on_message_complete(self) -> None:
        if self._status and not self.whole:
            self.whole = True
            self.ends = not self._parser.should_keep_alive()  # it can be asked at this moment alone


def _unpacked(body: bytearray) -> bytes:
    """Return the content of a packed body; some servers send deflate without its frame, or gzip in several parts."""
    framed = body[0] & 0x0F == zlib.DEFLATED or body[:2] == GZIP
    found, rest = b"", bytes(body)
    while rest:
        unpacking = zlib.decompressobj(GZIP_OR_ZLIB if framed else -zlib.MAX_WBITS)
        try:
            found += unpacking.decompress(rest, MAX_ANSWER_BYTES + 1 - len(found))
        except zlib.error as error:
            raise aiohttp.ClientPayloadError("the answer cannot be unpacked") from error
        if len(found) > MAX_ANSWER_BYTES or not unpacking.eof:
            raise aiohttp.ClientPayloadError("the answer is too long, or was cut off")
        rest = unpacking.unused_data if unpacking.unused_data[:2] == GZIP else b""
    return found
