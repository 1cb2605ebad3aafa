"""Runs the engine's last check inside the transport, at the moment when a message leaves.

Every slow step is over by then: the file is read, the connection stands, the login is done. The engine passes its
check by `looking_with`; a transport calls it by `about_to_leave`, or in a thread by the function from `from_thread`.
Requests outside of a send, such as uploads and questions about the account, have no check.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict

Look = Callable[[], Awaitable[None]]
Piece = bytes | bytearray | memoryview
PROMPT = 0.2  # seconds within which a thread has to learn that the check has passed

_look: ContextVar[Look | None] = ContextVar("last_look", default=None)


class HeldBackError(Exception):
    """Raised when the message must not leave any more, and did not; its text says why."""


class NotWholeError(aiohttp.ClientConnectionError):
    """Raised when the connection ended before the end of a message was written: no service acts on a part."""


@contextmanager
def looking_with(look: Look) -> Iterator[None]:
    """Call `look` before each request of a send; `look` raises HeldBackError to hold the message back."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


async def about_to_leave() -> None:
    """Run the check right before the first byte of a message leaves; raise HeldBackError."""
    if (look := _look.get()) is not None:
        await look()


def keep_back(why: str, *, cause: Exception | None = None) -> None:
    """Raise HeldBackError if the engine checks this message; no part of it may have left."""
    if _look.get() is not None:
        raise HeldBackError(why) from cause


def from_thread() -> Callable[[], None]:
    """Return the check of the send that is under way, for a thread that works for it."""
    look, loop = _look.get(), asyncio.get_running_loop()
    if look is None:
        return lambda: None

    def call() -> None:
        # The answer may reach the thread late, for example after this process stood still: then the check runs again.
        while _ago(asyncio.run_coroutine_threadsafe(_passed(look), loop).result()) > PROMPT:
            pass

    return call


async def _passed(look: Look) -> tuple[float, float]:
    """Run the check, and return when it passed: by the monotonic clock and by the wall clock."""
    await look()
    return time.monotonic(), time.time()


def _ago(moment: tuple[float, float]) -> float:
    return max(time.monotonic() - moment[0], time.time() - moment[1])


class LookingRequest(aiohttp.ClientRequest):
    """A request that runs the last check once its connection stands, and again before the end of its body.

    A file may take minutes, and aiohttp may leave the body of any message to a task of its own, before which other
    tasks have their turn. A service acts only on a whole request, so until the last piece is written nothing has left.
    """

    _held_back: HeldBackError | None = None
    _writing: "_LookBeforeTheEnd | None" = None

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        await about_to_leave()
        response = await super().send(conn)
        if self._held_back is not None:
            # From Python 3.12 on, aiohttp writes the body at once: there is no connection left to read from.
            response.close()
            raise self._held_back
        return response

    async def write_bytes(
        self,
        writer: AbstractStreamWriter,
        conn: aiohttp.connector.Connection,
        content_length: int | None = None,
    ) -> None:
        if _look.get() is None:
            await super().write_bytes(writer, conn, content_length)
            return
        # aiohttp has closed the connection by then; the code that waits for the answer gets that error.
        self._writing = _LookBeforeTheEnd(writer)
        try:
            await super().write_bytes(self._writing, conn, content_length)
        except HeldBackError as error:
            self._held_back = error

    def stop_short(self) -> bool:
        """Keep the end of the body from being written, if it was not; return whether it was kept."""
        if self._writing is None or self._held_back is not None:
            return False
        return self._writing.stop()


class _LookBeforeTheEnd(AbstractStreamWriter):
    """Writes a body, and keeps its last piece until the check has passed."""

    def __init__(self, writer: AbstractStreamWriter) -> None:
        self._writer = writer
        self._last: Piece = b""
        self._ended = self._stopped = False

    def stop(self) -> bool:
        """Write nothing any more, unless the end was written; return whether it was not."""
        self._stopped = not self._ended
        return self._stopped

    async def write(self, chunk: Piece) -> None:
        before, self._last = self._last, chunk
        if before:
            await self._writer.write(before)

    async def write_eof(self, chunk: bytes = b"") -> None:
        await about_to_leave()
        if self._stopped:
            raise NotWholeError
        self._ended = True
        if self._last:
            await self._writer.write(self._last)
        await self._writer.write_eof(chunk)

    async def drain(self) -> None:
        await self._writer.drain()

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        self._writer.enable_compression(encoding, strategy)

    def enable_chunking(self) -> None:
        self._writer.enable_chunking()

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        await self._writer.write_headers(status_line, headers)

    def send_headers(self) -> None:
        self._writer.send_headers()


async def send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a message again by itself, as it does with a PUT: the engine decides on that.

    Else the check before the second request could say that nothing left, while the first may have arrived.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if _look.get() is None or request.method == "GET":
            raise
        if isinstance(request, LookingRequest) and request.stop_short():
            raise NotWholeError from error
        raise aiohttp.ClientConnectionError from error
