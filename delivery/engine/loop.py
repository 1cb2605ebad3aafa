"""The process's event loop: pumps live on it, and it carries their messages over the network.

One loop carries several times as many messages per core as threads do, and a pump that waits on it costs
nothing (docs/decisions/0010-one-loop-per-worker.md).
"""

import asyncio
import atexit
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import aiohttp
import structlog
from django.conf import settings

from delivery import conf, transports
from delivery.engine.batching import Batches
from delivery.engine.last_look import Look
from delivery.engine.lease import LeaseRenewals
from delivery.engine.shift.alarm import Alarm
from delivery.engine.shift.changes import Changes
from delivery.outcomes import REFUSED_HERE, HeldBack, Outcome, Rejected, Unknown
from delivery.transports.base import Message, Timeouts, Transport, UnansweredError
from delivery.transports.http.exchange import open_session
from delivery.transports.leaving import HeldBackError, looking_with
from delivery.transports.networks.allowed import AllowedNetworks, allowed_networks

log = structlog.get_logger(__name__)
T = TypeVar("T")

SWEEP = 1.0  # seconds between two looks for messages that take too long


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One message to send; `tag` is the pump's own name for it."""

    tag: int
    message: Message
    key: str
    look: Look | None = None  # asked right before it leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The outcome of a send request, and how long sending took."""

    tag: int
    outcome: Outcome
    took_ms: int
    left: bool = True  # False: the service was not asked
    at: float = field(default_factory=time.monotonic)  # when its answer came


class SendLoop:
    """The event loop in a thread of its own, with one pooled HTTP session, shared statements and lease renewals."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._session: aiohttp.ClientSession | None = None
        self._carrying: dict[asyncio.Task[None], float] = {}  # until when each may take
        self._sweeping: asyncio.TimerHandle | None = None
        self.alarm = Alarm()
        self.batches = Batches()
        self.changes = Changes(self.batches)
        self.renewals = LeaseRenewals()
        threading.Thread(target=self._loop.run_forever, name="send-loop", daemon=True).start()

    def transport(self, kind: str, credentials: Mapping[str, str], *, owner: int = 0) -> Transport:
        return self.start(self._make(kind, credentials, owner)).result(timeout=30)

    def launch(
        self, transport: Transport, requests: Iterable[SendRequest], landed: Callable[[Landed], None]
    ) -> None:
        """Send all of `requests` at once; call `landed` with the result of each. Call this on the loop itself."""
        now = self._loop.time()
        for request in requests:
            task = self._loop.create_task(_carry(transport, request, landed))
            self._carrying[task] = now + _longest(transport, request.message) + 2
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        """Give up the messages that take too long: a look at all of them costs less than a timeout for each."""
        now = self._loop.time()
        self._carrying = {task: until for task, until in self._carrying.items() if not task.done()}
        for task, until in self._carrying.items():
            if until <= now:
                self._carrying[task] = math.inf  # once is enough
                task.cancel()
        self._sweeping = self._loop.call_later(SWEEP, self._sweep) if self._carrying else None

    def warm_up(self) -> None:
        """Open the connections that every shift needs, so that the first message of an idle worker does not wait."""
        self.start(self._opened())
        self.start(self.batches.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop, wait for it in this thread and return its result."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start `work` on the loop; return a future, on which the thread may wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Close all connections, at the end of the program."""
        self.start(self.batches.close()).result(timeout=5)
        self.start(self.renewals.close()).result(timeout=5)
        if self._session is not None:
            self.start(self._session.close()).result(timeout=5)

    async def _make(self, kind: str, credentials: Mapping[str, str], owner: int) -> Transport:
        session = await self._opened()
        return transports.make(
            kind, credentials, session, timeouts=_timeouts(), networks=_networks(), owner=owner
        )

    async def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session(networks=_networks())
        return self._session


_lock = threading.Lock()
_send_loop: SendLoop | None = None


def send_loop() -> SendLoop:
    """Return the send loop of this process; the first call makes it."""
    global _send_loop  # noqa: PLW0603 - one per process
    with _lock:
        if _send_loop is None:
            _send_loop = SendLoop()
            atexit.register(_send_loop.close)
        return _send_loop


def hang_up() -> None:
    """Close the loop's connections to the database, if there are any; the loop opens them again when needed."""
    if _send_loop is not None:
        _send_loop.run(_send_loop.batches.close())
        _send_loop.run(_send_loop.renewals.close())


def _networks() -> AllowedNetworks:
    return _networks_of(tuple(settings.PRIVATE_NETWORKS))


@lru_cache(maxsize=8)
def _networks_of(words: tuple[str, ...]) -> AllowedNetworks:
    return allowed_networks(words)


def _timeouts() -> Timeouts:
    total = settings.SEND_TIMEOUT_SECONDS
    return Timeouts(
        connect=min(settings.CONNECT_TIMEOUT_SECONDS, total / 2),
        total=total,
        upload=conf.UPLOAD_TIMES * total,
    )


async def _carry(transport: Transport, request: SendRequest, landed: Callable[[Landed], None]) -> None:
    started = time.perf_counter()
    try:
        outcome = await _sent(transport, request)
    except HeldBackError as error:
        outcome = HeldBack(reason=str(error))
    except Exception:  # a bug in a transport must not lose the message: whether it left is not known
        log.exception("transport_failed", transport=transport.kind)
        outcome = Unknown(reason="internal error while sending")
    took_ms = int((time.perf_counter() - started) * 1000)
    left = not (isinstance(outcome, Rejected) and outcome.code in REFUSED_HERE)
    landed(Landed(tag=request.tag, outcome=outcome, took_ms=took_ms, left=left))


async def _sent(transport: Transport, request: SendRequest) -> Outcome:
    """Return the answer of the service; raise HeldBackError where the last look kept the message back."""
    if request.look is None:
        return await _in_time(transport, request)
    if not request.look.fresh:
        await _looked(request.look)  # before a connection is made for nothing
    with looking_with(request.look):
        outcome = await _in_time(transport, request)
    if isinstance(outcome, Unknown) and request.look.give_up():
        raise HeldBackError(request.look.refusal)
    return outcome


async def _looked(look: Look) -> None:
    try:
        await look.check()
    except asyncio.CancelledError as error:  # by `SendLoop._sweep`
        raise HeldBackError(look.refusal) from error


async def _in_time(transport: Transport, request: SendRequest) -> Outcome:
    try:
        return await transport.send(request.message, request.key)
    except (
        TimeoutError,
        asyncio.CancelledError,
    ):  # the latter by `SendLoop._sweep`: nobody else cancels a message
        return Unknown(reason="no answer in time")


def _longest(transport: Transport, message: Message) -> float:
    """Return the time limit in seconds: a file that goes inside the message takes as long as an upload."""
    inside = message.media is not None and message.media.handle is None
    return transport.timeouts.upload if inside else transport.timeouts.total


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - not available on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


PATIENCE = 5.0  # seconds
NOT_THERE = Rejected(reason="the service knows nobody at this number", code="unknown_number")


async def refused(transport: Transport, address: str) -> Rejected | None:
    """Return why not to write to an address that does not exist; None where it exists or the service cannot tell."""
    try:
        async with asyncio.timeout(PATIENCE):
            return None if await transport.check_number(address) else NOT_THERE
    except (UnansweredError, TimeoutError):
        return None


class NumberChecks:
    """The number checks that one shift has under way."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, address: str, done: Callable[[Rejected | None], None]) -> None:
        """Check an address; call `done` with the reason not to write to it, or None. Call this on the loop itself."""
        task = asyncio.create_task(self._check(address, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel all checks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self, address: str, done: Callable[[Rejected | None], None]) -> None:
        found = None
        try:
            found = await refused(self._transport, address)
        except Exception:  # as any service that cannot answer: it stops nothing
            log.exception("number_check_failed", transport=self._transport.kind)
        done(found)
