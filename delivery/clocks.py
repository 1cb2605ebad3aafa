"""Compares the clocks of Redis, PostgreSQL and this process (SPEC P8).

Limits slide over Redis' time, windows and plans follow the process' time, and the ledger keeps what was sent. Where
two of these clocks disagree, limits and windows are not reliable, and nothing is sent until the clocks agree again.
No clock counts as right by itself: a clock that contradicts the two others is called wrong, and where no two agree,
each is compared with the database.

Everything here is pure but for `now`; `clock_reading.py` asks the servers.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Final

STEP_MS: Final = 250  # a larger jump means that the clock was set; a smaller one is a slow correction
SLEWED: Final = 0.01  # share of the time passed that a slow correction may amount to

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
UNITS: Final = ((DAY, "days", 2 * DAY), (HOUR, "hours", 2 * HOUR), (MINUTE, "minutes", 2 * MINUTE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The range of readings that a clock may have. No reading is valid where `earliest_ms` is after `latest_ms`."""

    earliest_ms: int
    latest_ms: int


NOTHING_WILL_DO: Final = Expected(earliest_ms=1, latest_ms=0)


class Whose(StrEnum):
    """The owner of a clock, as a sentence names it."""

    REDIS = "Redis"
    DATABASE = "the database"
    WORKER = "the worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The range of a clock minus the monotonic clock of this process, in milliseconds.

    The answer may have been under way, or waited for its turn, before it was read. So a message leaves at the
    earliest possible moment of this range, and has landed at the latest.
    """

    earliest_ms: float
    latest_ms: float

    @classmethod
    def read(cls, now_ms: int, *, asked: float, answered: float) -> "Clock":
        """Return the clock that read `now_ms` at some moment between `asked` and `answered`."""
        return cls(earliest_ms=now_ms - answered * 1000, latest_ms=now_ms + 1 - asked * 1000)

    def ahead_of(self, other: "Clock") -> float:
        """Return by how much this clock is ahead at least: below 0 where it is behind, 0 where both may agree."""
        if self.earliest_ms > other.latest_ms:
            return self.earliest_ms - other.latest_ms
        return min(0.0, self.latest_ms - other.earliest_ms)

    def stepped_since(self, before: "Clock", passed_ms: float) -> bool:
        """Decide whether the clock was set at once since the reading `before`, which is `passed` ago."""
        return abs(self.ahead_of(before)) > STEP_MS + passed_ms * SLEWED


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The range of milliseconds by which Redis' clock is ahead of the database's.

    Unlike a `Clock` it means the same in every process, so it can be stored.
    """

    least_ms: float
    most_ms: float

    @classmethod
    def of(cls, redis: Clock, database: Clock) -> "Ahead":
        return cls(
            least_ms=redis.earliest_ms - database.latest_ms, most_ms=redis.latest_ms - database.earliest_ms
        )

    @classmethod
    def parse(cls, text: str) -> "Ahead | None":
        """Read a text that `str` made; return None for any other text."""
        least, _, most = text.partition("..")
        try:
            return cls(least_ms=float(least), most_ms=float(most))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.least_ms:.0f}..{self.most_ms:.0f}"

    def differs_from(self, before: "Ahead") -> bool:
        """Decide whether one of the two clocks was set since the other reading."""
        apart = max(self.least_ms - before.most_ms, before.least_ms - self.most_ms)
        return apart > STEP_MS


def own() -> Clock:
    """Return the clock of this process."""
    difference = (time.time() - time.monotonic()) * 1000
    return Clock(earliest_ms=difference, latest_ms=difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The three clocks, read at one time."""

    redis: Clock
    database: Clock
    worker: Clock

    def disagreement(self, tolerance_ms: float) -> str:
        """Return a sentence that names the wrong clock and by how much it is wrong; empty where all agree."""
        clocks = self._named()
        agree = {
            frozenset(pair): abs(clocks[pair[0]].ahead_of(clocks[pair[1]])) <= tolerance_ms
            for pair in combinations(clocks, 2)
        }
        if all(agree.values()):
            return ""
        odd = [whose for whose in clocks if agree[frozenset(clocks) - {whose}]]
        return self._odd_one_out(odd, tolerance_ms) if odd else self._none_agree()

    def _named(self) -> Mapping[Whose, Clock]:
        return {Whose.DATABASE: self.database, Whose.REDIS: self.redis, Whose.WORKER: self.worker}

    def _odd_one_out(self, odd: Sequence[Whose], tolerance_ms: float) -> str:
        """Name the clock that the two others contradict; of several, the one that is furthest from another."""
        clocks = self._named()

        def furthest(whose: Whose) -> float:
            return max(abs(clocks[whose].ahead_of(clock)) for clock in clocks.values())

        whose = max(reversed(odd), key=furthest)
        against = [other for other in clocks if abs(clocks[whose].ahead_of(clocks[other])) > tolerance_ms]
        reference = " and ".join(against) if whose is Whose.DATABASE else against[0]
        return f"The clock of {whose} is {_by(clocks[whose].ahead_of(clocks[against[0]]))} {reference}."

    def _none_agree(self) -> str:
        redis, worker = self.redis.ahead_of(self.database), self.worker.ahead_of(self.database)
        return f"No two clocks agree: Redis is {_by(redis)} the database, and the worker is {_by(worker)} the database."


def expected_of_redis(*, database: Clock, worker: Clock, at: float, tolerance_ms: float) -> Expected:
    """Return what Redis' clock may read at `at` of the monotonic clock.

    No reading is valid where the two other clocks disagree.
    """
    if abs(database.ahead_of(worker)) > tolerance_ms:
        return NOTHING_WILL_DO
    earliest = max(clock.earliest_ms for clock in (database, worker)) - tolerance_ms
    latest = min(clock.latest_ms for clock in (database, worker)) + tolerance_ms
    return Expected(earliest_ms=round(at * 1000 + earliest), latest_ms=round(at * 1000 + latest))


def _by(difference_ms: float) -> str:
    return f"{amount(abs(difference_ms))} {'ahead of' if difference_ms > 0 else 'behind'}"


def amount(ms: float) -> str:
    """Return a length of time in words: 61 minutes."""
    for unit, word, least in UNITS:
        if ms >= least:
            return f"{round(ms / unit):,} {word}"
    seconds = max(1, round(ms / SECOND))
    return f"{seconds} second" if seconds == 1 else f"{seconds} seconds"
