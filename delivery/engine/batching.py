"""Does the database work of all pumps of a process.

Pumps live on one event loop (`loop.py`). They hand their intents and landings in here: those that come while
the last statement is still under way share the next one, so that a thousand accounts cost a few dozen
statements per second. An account whose messages come one by one also waits a moment for those of others; an
account without pacing waits for nobody. Everything else is asked one by one, in threads.

While the database is away, this module waits: the result of a message that left must not be lost over a restart.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import psycopg
import structlog
from django.db import InterfaceError, OperationalError, connection

from delivery import conf
from delivery.engine import recording
from delivery.engine.database_contact import contact
from delivery.engine.recording import Begun, Counts, Intent, Landing
from delivery.engine.shift.alarm import TICK
from delivery.engine.sql import Line, run

log = structlog.get_logger(__name__)
T = TypeVar("T")
Request = TypeVar("Request")
Answer = TypeVar("Answer")

PATIENCE = 60.0  # seconds for which a database that is away is waited for
PAUSE = 0.5  # seconds between two tries
THREADS = 8
MOST = 500  # requests in one statement


class StatementQueue(Generic[Request, Answer]):
    """Requests that wait for the next shared statement. Each caller gets the answers to its own requests only."""

    def __init__(self, write: Callable[[Sequence[Request]], Awaitable[Sequence[Answer]]]) -> None:
        self._write = write  # answers each request, in its place
        self._waiting: list[tuple[Sequence[Request], asyncio.Future[Sequence[Answer]], float]] = []
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, requests: Sequence[Request], *, patience: float = 0.0) -> Sequence[Answer]:
        """Return the answer to each of the requests, in their order.

        They wait up to `patience` seconds for requests of others; whoever has none takes all who wait along.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Answer]] = loop.create_future()
        by = loop.time() + patience
        self._waiting.append((requests, answer, by))
        self._start_by(by)
        try:
            return await answer
        except asyncio.CancelledError:
            # Nobody waits for the answers any more: a request that was not written yet must not be written later.
            self._waiting = [each for each in self._waiting if each[1] is not answer]
            raise

    def _start_by(self, by: float) -> None:
        """Start to write at this time at the latest, or now if that is over or there is enough for a statement."""
        loop = asyncio.get_running_loop()
        if self._writing is not None:
            return  # it looks again when it is done
        if by <= loop.time() or len(self._waiting) >= MOST:
            self._writing = asyncio.create_task(self._write_all())
        elif self._timer is None or by < self._timer.when():
            self._stop_timer()
            self._timer = loop.call_at(by + TICK, self._look_again)

    def _look_again(self) -> None:
        self._stop_timer()
        if self._waiting:
            self._start_by(self._earliest())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _earliest(self) -> float:
        return min(by for _, _, by in self._waiting)

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write_some()
                if self._waiting and self._earliest() > asyncio.get_running_loop().time():
                    break
        finally:
            self._writing = None
            self._look_again()

    async def _write_some(self) -> None:
        batch, requests = [], list[Request]()
        while self._waiting and len(requests) < MOST:
            each, answer, _ = self._waiting.pop(0)
            batch.append((slice(len(requests), len(requests) + len(each)), answer))
            requests.extend(each)
        try:
            answers = await self._write(requests)
        except Exception as error:  # noqa: BLE001 - each pump that waits is told
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
        else:
            for own, answer in batch:
                if not answer.done():
                    answer.set_result(answers[own])


class Batches:
    """The shared statements and the threads of a process, for the pumps on its loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="batches")
        self._lines = (Line(), Line())
        self._runs: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._intents: StatementQueue[Intent, Begun | None] = StatementQueue(self._begin)
        self._landings: StatementQueue[Landing, Counts | None] = StatementQueue(self._record)

    async def begin(self, intents: Sequence[Intent], *, patience: float = 0.0) -> list[Begun | None]:
        """Write down the intents; return for each, in its place, the leave to send it or None."""
        answers = await self._intents.submit(intents, patience=patience)
        return [
            begun if begun is not None and begun.answers(intent) else None
            for intent, begun in zip(intents, answers, strict=True)
        ]

    async def may_begin(self, intent: Intent) -> bool:
        """Return whether an intent would get leave now. It writes nothing, so the message may still not leave."""
        return await self.ask(partial(_may_begin, intent))

    async def record(self, landings: Sequence[Landing], *, patience: float = 0.0) -> list[Counts]:
        """Write down the results of messages; return the counters of their runs."""
        runs = {landing.whose.run_id for landing in landings}
        answers = await self._landings.submit(landings, patience=patience)
        counts = {each.run_id: each for each in answers if each is not None}
        found = [counts[run_id] for run_id in runs if run_id in counts]
        for run_id in runs - set(counts):
            # Somebody else holds the run, or something is wrong with it: without the others.
            left = [landing for landing in landings if landing.whose.run_id == run_id]
            found += await self.ask_about(run_id, partial(_record_surely, left))
        return found

    async def ask(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread that may use the database and Redis; return its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, patiently, work)

    async def open(self) -> None:
        for line in self._lines:
            await line.open()

    async def ask_about(self, run_id: int, work: Callable[[], T]) -> T:
        """Do the same as `ask` for work that locks a run.

        PostgreSQL lets one in after the other. They wait for it here, and not each in a thread: else a run that
        somebody holds for long, and that many accounts share, would take all threads from the others.
        """
        lock = self._runs.setdefault(run_id, asyncio.Lock())
        async with lock:
            return await self.ask(work)

    async def close(self) -> None:
        for line in self._lines:
            await line.close()

    async def _begin(self, intents: Sequence[Intent]) -> Sequence[Begun | None]:
        deadline = time.monotonic() + PATIENCE
        while True:
            now = datetime.now(UTC)  # again for each try: a window may close while the database is away
            try:
                return await self._lines[0].run(
                    recording.begin(
                        intents, now=now, guard=conf.window_guard(), tolerance=conf.clock_tolerance()
                    )
                )
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if time.monotonic() >= deadline:
                    raise
                log.warning("database_away")
                await asyncio.sleep(PAUSE)

    async def _record(self, landings: Sequence[Landing]) -> Sequence[Counts | None]:
        """Record all landings in one statement; if that fails, none of them counts as recorded."""
        counts: dict[int, Counts] = {}
        try:
            counts = await self._lines[1].run(recording.record(landings, now=datetime.now(UTC)))
        except psycopg.Error:
            log.warning("recorded_one_by_one", landings=len(landings), exc_info=True)
        return [counts.get(landing.whose.run_id) for landing in landings]


def patiently(work: Callable[[], T]) -> T:
    """Do the work and return its result; repeat it while the database is away."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answer = work()
        except (OperationalError, InterfaceError):
            if time.monotonic() >= deadline:
                raise
            log.warning("database_away")
            time.sleep(PAUSE)
        else:
            contact.note()
            return answer
        finally:
            connection.close()  # back to the pool


def _may_begin(intent: Intent) -> bool:
    guard, tolerance = conf.window_guard(), conf.clock_tolerance()
    return run(recording.may_begin(intent, now=datetime.now(UTC), guard=guard, tolerance=tolerance))


def _record_surely(landings: Sequence[Landing]) -> list[Counts]:
    return list(run(recording.record_surely(landings, now=datetime.now(UTC))).values())
