"""Carries messages over the network: one event loop per process, shared by all pumps.

Pumps are threads that wait for the database; the network is asynchronous, because that carries several times
as many messages per core (docs/decisions/0006-async-transports.md). A pump hands messages over with `launch`
and finds each result in its own queue.
"""

import asyncio
import atexit
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

import aiohttp
import structlog
from django.conf import settings

from delivery import transports
from delivery.outcomes import Outcome, Unknown
from delivery.transports.base import Message, Timeouts, Transport
from delivery.transports.http import open_session

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One message on its way; `tag` is the pump's own name for it."""

    tag: int
    message: Message
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What became of a parcel, and how long that took."""

    tag: int
    outcome: Outcome
    took_ms: int


class Wire:
    """The process's event loop in a thread of its own, with one pooled HTTP session."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._session: aiohttp.ClientSession | None = None
        threading.Thread(target=self._loop.run_forever, name="wire", daemon=True).start()

    def transport(self, kind: str, credentials: Mapping[str, str]) -> Transport:
        return self.start(self._make(kind, credentials)).result(timeout=30)

    def launch(self, transport: Transport, parcels: Sequence[Parcel], landed: "SimpleQueue[Landed]") -> None:
        """Send all of `parcels` at once; each one's result goes into `landed`. Returns at once."""

        def start() -> None:
            for parcel in parcels:
                task = self._loop.create_task(_carry(transport, parcel, landed))
                _running.add(task)
                task.add_done_callback(_running.discard)

        self._loop.call_soon_threadsafe(start)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run something asynchronous; the thread may wait for it, or not."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Close what is open; the program ends."""
        if self._session is not None:
            self.start(self._session.close()).result(timeout=5)

    async def _make(self, kind: str, credentials: Mapping[str, str]) -> Transport:
        if self._session is None:
            self._session = open_session()
        return transports.make(kind, credentials, self._session, timeouts=_timeouts())


_running: set[asyncio.Task[None]] = set()
_lock = threading.Lock()
_wire: Wire | None = None


def wire() -> Wire:
    """The process's wire, made on first use."""
    global _wire  # noqa: PLW0603 - one per process
    with _lock:
        if _wire is None:
            _wire = Wire()
            atexit.register(_wire.close)
        return _wire


def _timeouts() -> Timeouts:
    total = settings.SEND_TIMEOUT_SECONDS
    return Timeouts(connect=min(settings.CONNECT_TIMEOUT_SECONDS, total / 2), total=total, upload=6 * total)


async def _carry(transport: Transport, parcel: Parcel, landed: "SimpleQueue[Landed]") -> None:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(settings.SEND_TIMEOUT_SECONDS + 2):
            outcome = await transport.send(parcel.message, parcel.key)
    except TimeoutError:
        outcome = Unknown(reason="no answer in time")
    except Exception:  # a bug in a transport must not lose the message: whether it left is not known
        log.exception("transport_failed", transport=transport.kind)
        outcome = Unknown(reason="internal error while sending")
    landed.put(Landed(tag=parcel.tag, outcome=outcome, took_ms=int((time.perf_counter() - started) * 1000)))


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - not available on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
