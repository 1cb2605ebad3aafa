"""What a forecast is made from, and what it says. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from delivery.pacing import Limits
from delivery.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an account holds itself to for one action, and what it has used of it.

    `day_caps` are the caps of today and of the days that follow, the last one for all after it; none is no
    cap. `reserved` are messages that other runs have planned for a day, by its number from today.
    `hour_since` is when the first of the `hour_used` messages of the last hour left. `slowest` are the seconds
    that a message has been seen to take, whatever the limits allow.
    """

    limits: Limits
    day_caps: Sequence[int] = ()
    day_used: int = 0
    reserved: Mapping[int, int] = field(default_factory=dict)
    hour_used: int = 0
    hour_since: datetime | None = None
    slowest: float = 0.0

    def room(self, day: int) -> int | None:
        """Messages that may still leave on a day, as things stand now; None is any number."""
        if not self.day_caps:
            return None
        cap = self.day_caps[min(day, len(self.day_caps) - 1)]
        return max(0, cap - self.reserved.get(day, 0) - (self.day_used if day == 0 else 0))

    def fits(self, parts: int) -> bool:
        """Whether there is any day that could take a target of so many messages."""
        return not self.day_caps or max(self.day_caps) >= parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an account has to send for one run. `own` is the run that the forecast is about.

    `spacing` are the shortest and the longest seconds between two targets that a drip asks for by itself.
    """

    targets: int
    parts: int = 1
    action: str = "message"
    window: Window
    ready_at: datetime
    spacing: tuple[float, float] = (0.0, 0.0)
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """An account with its runs, in the order in which it serves them; nothing leaves before `free_at`."""

    zone: str
    allowances: Mapping[str, Allowance]
    jobs: Sequence[Job]
    free_at: datetime | None = None


class PauseCause(StrEnum):
    """Why a run would hold still."""

    WINDOW = "window"  # its window is closed
    DAILY_CAP = "daily_cap"  # the account has sent all that it may that day
    OTHER_RUNS = "other_runs"  # the account serves another run first


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The run holds still from `at` until `until` with `done` targets served; no end: not within a year."""

    at: datetime
    until: datetime | None
    cause: PauseCause
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """So many targets are served by this time; between two points the line is straight."""

    at: datetime
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a run will go. No `starts_at` or `finishes_at`: not within a year."""

    starts_at: datetime | None
    finishes_at: datetime | None
    pauses: tuple[Pause, ...] = ()
    curve: tuple[Point, ...] = ()
