"""Reads the clocks that `clocks.py` compares.

Redis remembers that they disagreed, so that all who slept until a wrong time are woken once the clocks agree.
"""

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import connection
from redis import Redis, RedisError

from config.redis.client import client
from delivery.clocks import Clock, Clocks, own

log = structlog.get_logger(__name__)

FRESH: Final = 2.0  # seconds for which a reading of the database's clock is used again
APART_KEY: Final = (
    "paceline:clocks:apart"  # when somebody last found the clocks apart, by the database's clock
)
REPORTS_KEY: Final = "paceline:clocks:workers"  # a hash: the worker's name -> what it read last
BEAT: Final = "beat"  # what the names of beats begin with among those of workers
KEPT_SECONDS: Final = 7 * 24 * 3600
QUIET_MS: Final = 15_000  # without a complaint, after which the clocks are taken to agree again
SAY_EVERY: Final = 30.0  # seconds; each account of a worker finds the same
LATELY_MS: Final = 60_000  # for which a worker's report counts


def tolerance_ms() -> float:
    """Return by how many milliseconds clocks may differ."""
    return float(settings.CLOCK_TOLERANCE_SECONDS) * 1000


class DatabaseClock:
    """PostgreSQL's clock: read by all shifts of a process together, since it costs a statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._clock: Clock | None = None

    def read(self, *, fresh: float = FRESH) -> Clock:
        """Return the clock, by a reading that is no older than `fresh` seconds."""
        with self._lock:
            known, age = self._clock, time.monotonic() - self._read_at
        if known is not None and age < fresh:
            return known
        asked = time.monotonic()
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp()) * 1000")
            now_ms = int(cursor.fetchone()[0])
        answered = time.monotonic()
        clock = Clock.read(now_ms, asked=asked, answered=answered)
        with self._lock:
            self._clock, self._read_at = clock, answered
        return clock

    def now(self) -> datetime:
        """Return the database's time by the last reading, without asking; before there was one, the process' own."""
        with self._lock:
            known = self._clock
        if known is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(time.monotonic() + known.earliest_ms / 1000, UTC)


class RedisClock:
    """Redis' clock as this process last read it, to notice when it is set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._clock: Clock | None = None
        self.times_set = 0  # how often it was found to be set at once

    def note(self, clock: Clock) -> int:
        """Take note of a reading; return how often the clock was found to be set."""
        now = time.monotonic()
        with self._lock:
            passed_ms = (now - self._read_at) * 1000
            if self._clock is not None and clock.stepped_since(self._clock, passed_ms):
                self.times_set += 1
            self._clock, self._read_at = clock, now
            return self.times_set


class Seldom:
    """Lets a process say something again only after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said_at = -SAY_EVERY

    def due(self) -> bool:
        with self._lock:
            due = time.monotonic() - self._said_at >= SAY_EVERY
            if due:
                self._said_at = time.monotonic()
            return due


complaints: Final = Seldom()
database_clock: Final = DatabaseClock()
redis_clock: Final = RedisClock()


def read(redis: Redis | None = None) -> Clocks:
    """Read all three clocks now."""
    asked = time.monotonic()
    seconds, micros = (redis or client()).time()
    answered = time.monotonic()
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    return Clocks(
        redis=Clock.read(now_ms, asked=asked, answered=answered),
        database=database_clock.read(fresh=0),
        worker=own(),
    )


def own_clock_is_off() -> bool:
    """Decide whether this process' clock and the database's disagree: then nothing may be planned by it."""
    return abs(own().ahead_of(database_clock.read())) > tolerance_ms()


def why_not() -> str:
    """Return a sentence if nothing may be sent, fired or woken by the clock of this process; else an empty text.

    A process on another machine may have a better one, and people are told.
    """
    if not own_clock_is_off():
        return ""
    clocks = read()
    sentence = clocks.disagreement(tolerance_ms())
    if sentence:
        complain(sentence, clocks)
    return sentence


def complain(sentence: str, clocks: Clocks) -> None:
    """Log that the clocks disagree, and remember when, so that a tick wakes all waiting accounts once they agree."""
    if complaints.due():
        log.error("clocks_disagree", detail=sentence)
    with suppress(RedisError):  # the next complaint comes in a few seconds
        client().set(APART_KEY, _database_ms(clocks), ex=KEPT_SECONDS)


def agree_again() -> bool:
    """Return whether clocks that disagreed have agreed for a while; true only once."""
    said = client().get(APART_KEY)
    if said is None:
        return False
    clocks = read()
    if clocks.disagreement(tolerance_ms()) or abs(_database_ms(clocks) - int(said)) < QUIET_MS:
        return False
    return bool(client().delete(APART_KEY))


def report(name: str) -> None:
    """Tell how the clock of a worker or beat differs from the database's, for health; complain where it is too much.

    Nobody sends by beat's clock. So accounts need not wait for it, and it is only told.
    """
    clocks = read()
    sentence = clocks.disagreement(tolerance_ms())
    if sentence and not _is_beat(name):
        complain(sentence, clocks)
    elif sentence and complaints.due():
        log.error("clocks_disagree", detail=sentence.replace("the worker", BEAT))
    said = {"at": _database_ms(clocks), "ahead": round(clocks.worker.ahead_of(clocks.database))}
    gone = set(client().hkeys(REPORTS_KEY)) - set(_reports(said["at"]))
    with client().pipeline() as calls:
        if gone:
            calls.hdel(REPORTS_KEY, *gone)
        calls.hset(REPORTS_KEY, name, json.dumps(said))
        calls.expire(REPORTS_KEY, KEPT_SECONDS)
        calls.execute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The milliseconds by which clocks are ahead of the database's, and `sentences` about those too far off."""

    redis_ms: float
    server_ms: float
    workers_ms: dict[str, float]
    sentences: tuple[str, ...]

    @property
    def all_ms(self) -> dict[str, float]:
        """Return all differences by name."""
        return {"redis": self.redis_ms, "this server": self.server_ms} | self.workers_ms

    @property
    def most_ms(self) -> float:
        return max(abs(ahead) for ahead in self.all_ms.values())

    def named(self) -> str:
        """Return each difference with its name, for the person at the terminal."""
        return ", ".join(f"{name}: {ahead / 1000:+.1f} s" for name, ahead in sorted(self.all_ms.items()))


def differences() -> Differences:
    """Compare Redis' clock, this process' and those of the workers that reported with the database's."""
    clocks = read()
    reports = _reports(_database_ms(clocks))
    workers = {name.decode() if isinstance(name, bytes) else name: ahead for name, ahead in reports.items()}
    found = clocks.disagreement(tolerance_ms()).replace("the worker", "this server")
    return Differences(
        redis_ms=clocks.redis.ahead_of(clocks.database),
        server_ms=clocks.worker.ahead_of(clocks.database),
        workers_ms=workers,
        sentences=(*filter(None, [found]), *_off(workers)),
    )


def _reports(now_ms: int) -> dict[bytes | str, float]:
    """Return by how much the clocks of workers are ahead, for those that reported lately."""
    found = {}
    for name, text in client().hgetall(REPORTS_KEY).items():
        said: dict[str, Any] = json.loads(text)
        if abs(now_ms - said["at"]) <= LATELY_MS:
            found[name] = float(said["ahead"])
    return found


def _off(reported: dict[str, float]) -> tuple[str, ...]:
    """Return one sentence about the workers and one about the beats whose clocks are too far off."""
    workers = {name: ahead for name, ahead in reported.items() if not _is_beat(name)}
    off = [abs(ahead) for ahead in workers.values() if abs(ahead) > tolerance_ms()]
    beats = [abs(ahead) for name, ahead in reported.items() if _is_beat(name) and abs(ahead) > tolerance_ms()]
    said = []
    if off:
        said.append(
            f"The clocks of {len(off)} of {len(workers)} workers are off by up to {max(off) / 1000:.0f} s."
        )
    if beats:
        said.append(f"The clock of beat is off by {max(beats) / 1000:.0f} s.")
    return tuple(said)


def _is_beat(name: str) -> bool:
    return name.startswith(f"{BEAT}@")


def _database_ms(clocks: Clocks) -> int:
    return round(time.monotonic() * 1000 + clocks.database.earliest_ms)
