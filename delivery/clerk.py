"""The database work of all pumps of a process.

Pumps live on one event loop (`wire.py`). They hand their intents and landings in here: those that come while
the last statement is still under way share the next one, so that a thousand accounts cost a few dozen
statements per second and a single account waits for nobody. Everything else is asked one by one, in threads.

A database that is away is waited for: what left must not be lost over a restart of it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import psycopg
import structlog
from django.db import InterfaceError, OperationalError, connection

from delivery import knobs, records
from delivery.records import Begun, Counts, Intent, Landing
from delivery.statements import Line, run

log = structlog.get_logger(__name__)
T = TypeVar("T")
Wish = TypeVar("Wish")
Answer = TypeVar("Answer")

PATIENCE = 60.0  # seconds for which a database that is away is waited for
PAUSE = 0.5  # seconds between two tries
THREADS = 8
MOST = 500  # wishes in one statement


class Tray(Generic[Wish, Answer]):
    """Wishes that wait for the next shared statement."""

    def __init__(self, write: Callable[[Sequence[Wish]], Awaitable[Mapping[int, Answer]]]) -> None:
        self._write = write
        self._waiting: list[tuple[Sequence[Wish], asyncio.Future[Mapping[int, Answer]]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def hand_in(self, wishes: Sequence[Wish]) -> Mapping[int, Answer]:
        """The answers of the statement that `wishes` were part of, others' among them."""
        answer: asyncio.Future[Mapping[int, Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((wishes, answer))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await answer

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write_some()
        finally:
            self._writing = None

    async def _write_some(self) -> None:
        batch, wishes = [], list[Wish]()
        while self._waiting and len(wishes) < MOST:
            each, answer = self._waiting.pop(0)
            wishes.extend(each)
            batch.append(answer)
        try:
            answers = await self._write(wishes)
        except Exception as error:  # noqa: BLE001 - each pump that waits is told
            for answer in batch:
                answer.set_exception(error)
        else:
            for answer in batch:
                answer.set_result(answers)


class Clerk:
    """One per process, for the pumps on its loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="clerk")
        self._lines = (Line(), Line())
        self._runs: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._intents: Tray[Intent, Begun] = Tray(self._begin)
        self._landings: Tray[Landing, Counts] = Tray(self._record)

    async def begin(self, intents: Sequence[Intent]) -> Mapping[int, Begun]:
        """Write down the intents; answers with those that may go, by target."""
        return await self._intents.hand_in(intents)

    async def record(self, landings: Sequence[Landing]) -> list[Counts]:
        """Write down what became of messages; the counters of their runs."""
        runs = {landing.whose.run_id for landing in landings}
        counts = await self._landings.hand_in(landings)
        found = [counts[run_id] for run_id in runs if run_id in counts]
        for run_id in runs - set(counts):
            # Somebody else holds the run, or something is wrong with it: without the others.
            left = [landing for landing in landings if landing.whose.run_id == run_id]
            found += await self.ask_about(run_id, partial(_record_surely, left))
        return found

    async def ask(self, work: Callable[[], T]) -> T:
        """What `work` answers, from a thread that may use the database and Redis."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, patiently, work)

    async def open(self) -> None:
        for line in self._lines:
            await line.open()

    async def ask_about(self, run_id: int, work: Callable[[], T]) -> T:
        """The same for work that locks a run.

        PostgreSQL lets one in after the other. They wait for it here, and not each in a thread: else a run that
        somebody holds for long, and that many accounts share, would take all threads from the others.
        """
        lock = self._runs.setdefault(run_id, asyncio.Lock())
        async with lock:
            return await self.ask(work)

    async def close(self) -> None:
        for line in self._lines:
            await line.close()

    async def _begin(self, intents: Sequence[Intent]) -> Mapping[int, Begun]:
        deadline = time.monotonic() + PATIENCE
        while True:
            now = datetime.now(UTC)  # again for each try: a window may close while the database is away
            try:
                return await self._lines[0].run(records.begin(intents, now=now, sendable=knobs.sendable(now)))
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if time.monotonic() >= deadline:
                    raise
                log.warning("database_away")
                await asyncio.sleep(PAUSE)

    async def _record(self, landings: Sequence[Landing]) -> Mapping[int, Counts]:
        """At once and together if that works; nothing of it counts as recorded if it does not."""
        try:
            return await self._lines[1].run(records.record(landings, now=datetime.now(UTC)))
        except psycopg.Error:
            log.warning("recorded_one_by_one", landings=len(landings), exc_info=True)
            return {}


def patiently(work: Callable[[], T]) -> T:
    """Do it, and again while the database is away."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except (OperationalError, InterfaceError):
            if time.monotonic() >= deadline:
                raise
            log.warning("database_away")
            time.sleep(PAUSE)
        finally:
            connection.close()  # back to the pool


def _record_surely(landings: Sequence[Landing]) -> list[Counts]:
    return list(run(records.record_surely(landings, now=datetime.now(UTC))).values())
