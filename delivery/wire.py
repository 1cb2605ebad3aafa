"""The process's event loop: pumps live on it, and it carries their messages over the network.

One loop carries several times as many messages per core as threads do, and a pump that waits on it costs
nothing (docs/decisions/0010-one-loop-per-worker.md).
"""

import asyncio
import atexit
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import structlog
from django.conf import settings

from delivery import knobs, number_check, transports
from delivery.clerk import Clerk
from delivery.keeper import Keeper
from delivery.outcomes import Outcome, Unknown
from delivery.reach import Reach, reach_of
from delivery.transports.base import Message, Timeouts, Transport
from delivery.transports.http.exchange import open_session

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One message on its way; `tag` is the pump's own name for it."""

    tag: int
    message: Message
    key: str
    stranger: bool = False  # whether the address exists is asked first, where the service answers that


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What became of a parcel, and how long that took."""

    tag: int
    outcome: Outcome
    took_ms: int


class Wire:
    """The event loop in a thread of its own, with one pooled HTTP session, the clerk and the keeper."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._session: aiohttp.ClientSession | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self.clerk = Clerk()
        self.keeper = Keeper()
        threading.Thread(target=self._loop.run_forever, name="wire", daemon=True).start()

    def transport(self, kind: str, credentials: Mapping[str, str]) -> Transport:
        return self.start(self._make(kind, credentials)).result(timeout=30)

    def launch(
        self, transport: Transport, parcels: Iterable[Parcel], landed: Callable[[Landed], None]
    ) -> None:
        """Send all of `parcels` at once; each one's result is told to `landed`. From the loop itself."""
        for parcel in parcels:
            task = self._loop.create_task(_carry(transport, parcel, landed))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

    def warm_up(self) -> None:
        """Open what every shift needs, so that the first message of an idle worker does not wait for it."""
        self.start(self._opened())
        self.start(self.clerk.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop, and wait for it in this thread."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run something asynchronous; the thread may wait for it, or not."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Close what is open; the program ends."""
        self.start(self.clerk.close()).result(timeout=5)
        if self._session is not None:
            self.start(self._session.close()).result(timeout=5)

    async def _make(self, kind: str, credentials: Mapping[str, str]) -> Transport:
        return transports.make(kind, credentials, await self._opened(), timeouts=_timeouts(), reach=_reach())

    async def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session(reach=_reach())
        return self._session


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


def hang_up() -> None:
    """Close the loop's connections to the database, if there are any; they are made again when needed."""
    if _wire is not None:
        _wire.run(_wire.clerk.close())


def _reach() -> Reach:
    return reach_of(settings.PRIVATE_NETWORKS)


def _timeouts() -> Timeouts:
    total = settings.SEND_TIMEOUT_SECONDS
    return Timeouts(
        connect=min(settings.CONNECT_TIMEOUT_SECONDS, total / 2),
        total=total,
        upload=knobs.UPLOAD_TIMES * total,
    )


async def _carry(transport: Transport, parcel: Parcel, landed: Callable[[Landed], None]) -> None:
    started = time.perf_counter()
    try:
        refused = await number_check.refused(transport, parcel.message.address) if parcel.stranger else None
        async with asyncio.timeout(_longest(transport, parcel.message) + 2):
            outcome = refused or await transport.send(parcel.message, parcel.key)
    except TimeoutError:
        outcome = Unknown(reason="no answer in time")
    except Exception:  # a bug in a transport must not lose the message: whether it left is not known
        log.exception("transport_failed", transport=transport.kind)
        outcome = Unknown(reason="internal error while sending")
    landed(Landed(tag=parcel.tag, outcome=outcome, took_ms=int((time.perf_counter() - started) * 1000)))


def _longest(transport: Transport, message: Message) -> float:
    """A file that goes inside the message takes as long as an upload."""
    inside = message.media is not None and message.media.handle is None
    return transport.timeouts.upload if inside else transport.timeouts.total


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - not available on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
