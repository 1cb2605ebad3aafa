"""Lets an answer wait for a reader that is slower than we are.

Daphne takes all that it is given at once, and keeps in memory what the reader has not taken: a slow reader of a large
file would have all of it there. Twisted, below it, says when enough is waiting, if it is asked as here.

A download of a list holds a database connection meanwhile. So a reader that takes nothing for long is cut off.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from daphne.server import Server
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

if TYPE_CHECKING:
    from daphne.http_protocol import WebRequest

log = structlog.get_logger(__name__)

LONGEST_STALL = 120.0  # seconds in which a reader takes nothing of what waits for it


@implementer(IPushProducer)
class Valve:
    """Is closed while enough is waiting for the reader; Twisted calls the methods."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    async def wait(self) -> bool:
        """Wait until the reader has taken what was sent, or has gone; return False where it takes nothing for long."""
        try:
            async with asyncio.timeout(LONGEST_STALL):
                await self._open.wait()
        except TimeoutError:
            return False
        return True

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._open.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._open.set()

    def stopProducing(self) -> None:  # noqa: N802 - the reader has gone
        self._open.set()


class PatientServer(Server):  # type: ignore[misc]  # Daphne has no types
    """Daphne, whose `send` returns once the reader has taken most of what was sent, and cuts off one that stalls."""

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Offer the application to cut the connection, where it cannot send an answer to its end."""
        if scope["type"] == "http":
            scope["extensions"] = {**scope.get("extensions", {}), "paceline.cut": partial(_cut, protocol)}
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        if message["type"] != "http.response.body":
            await super().handle_reply(protocol, message)
            return
        if not message.get("more_body"):
            _remove_valve(protocol)
            await super().handle_reply(protocol, message)
            return
        valve = _valve(protocol)
        await super().handle_reply(protocol, message)
        if valve is not None and not await valve.wait():
            log.warning("reader_takes_nothing", seconds=LONGEST_STALL)
            _cut(protocol)


def _valve(request: "WebRequest") -> Valve | None:
    """Return the valve of an answer that comes in pieces; None where the reader has gone."""
    if request.finished or request.channel is None:
        return None
    if request.producer is None:
        request.registerProducer(Valve(), True)
    return request.producer if isinstance(request.producer, Valve) else None


def _remove_valve(request: "WebRequest") -> None:
    """Take the valve away before the last piece: Twisted wants that."""
    if isinstance(request.producer, Valve) and request.channel is not None:
        request.unregisterProducer()


def _cut(request: "WebRequest") -> None:
    if request.channel is not None and request.channel.transport is not None:
        request.channel.transport.abortConnection()
