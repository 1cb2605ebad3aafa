"""The input of a forecast and its result. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from delivery.pacing import Limits
from delivery.planning.rolling import Rolling
from delivery.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """An account's limits for one action, and how much of them is used.

    `day_caps` are today's cap and those after each further day on which something is sent, the last one for all
    that follow; none is no cap. `reserved` are messages that other runs have planned for a day, by its number from
    today. `hour_since` is when the first of the `hour_used` messages of the last hour left. `slowest` are the
    seconds that a message has been seen to take, whatever the limits allow, and `errors` the share that failed.
    `rolling` are the caps over long spans. Before the day `closed_until` there is no room.
    """

    limits: Limits
    day_caps: Sequence[int] = ()
    day_used: int = 0
    reserved: Mapping[int, int] = field(default_factory=dict)
    hour_used: int = 0
    hour_since: datetime | None = None
    slowest: float = 0.0
    errors: float = 0.0
    rolling: Sequence[Rolling] = ()
    closed_until: int = 0

    def cap(self, day: int, busy: Collection[int] = ()) -> int | None:
        """Return the cap of a day. A warm-up grows with each earlier day that has work; `busy` adds such days."""
        if len(self.day_caps) < 2:
            return next(iter(self.day_caps), None)
        worked: set[int] = {*busy, *self.reserved, *((0,) if self.day_used else ())}
        grown = sum(each < day for each in worked)
        return self.day_caps[min(grown, len(self.day_caps) - 1)]

    def room(self, day: int, busy: Collection[int] = ()) -> int | None:
        """Return how many messages may still leave on a day, as planned now; None is any number.

        Where `busy` has the messages of its days, they count in the spans that end on other days.
        """
        if day < self.closed_until:
            return 0
        cap, rooms = self.cap(day, busy), []
        if cap is not None:
            rooms.append(max(0, cap - self.reserved.get(day, 0) - (self.day_used if day == 0 else 0)))
        if self.rolling:
            planned = Counter(self.reserved) + Counter(busy if isinstance(busy, Mapping) else {})
            planned[day] = self.reserved.get(day, 0)  # the caller subtracts those of the day itself
            rooms += [rolling.room(day, planned) for rolling in self.rolling]
        return min(rooms, default=None)

    def fits(self, parts: int) -> bool:
        """Decide whether any day could take a target of `parts` messages."""
        caps = [rolling.cap for rolling in self.rolling] + ([max(self.day_caps)] if self.day_caps else [])
        return min(caps, default=parts) >= parts


Rank = tuple[int, datetime]  # the order of P1: by priority, the highest first, then by firing


def rank_of(priority: int, fired_at: datetime) -> Rank:
    return -priority, fired_at


FIRST = rank_of(0, datetime.min.replace(tzinfo=UTC))


class Who(StrEnum):
    """The recipients of a job, by what its messages use up."""

    KNOWN = "known"  # groups, and people who wrote lately
    NEW = "new"  # new people (SPEC N1): places of the account's day and week
    NEW_CHAT = "new_chat"  # new people to whom it never wrote: a new chat of the service's own quota, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A number of targets that may leave from a moment on."""

    at: datetime
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of an account for one run and one kind of recipient. `own` is of the run that the forecast is about.

    `spacing` are the shortest and the longest seconds between two targets that a drip asks for by itself. `planned`
    says from when on targets may leave, in order, where they have times of their own; targets beyond it never leave.
    `errors` is the run's own error rate, once it has one; before that the account's rate is expected.
    """

    targets: int
    parts: int = 1
    action: str = "message"
    window: Window
    ready_at: datetime
    spacing: tuple[float, float] = (0.0, 0.0)
    rank: Rank = FIRST
    errors: float | None = None
    own: bool = False
    who: Who = Who.KNOWN
    planned: Sequence[Planned] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDown:
    """An account that was told to slow down (SPEC P6): its gaps are `factor` times as long.

    One step of `by` is taken back after `every` messages without complaint, of which `clean` have left.
    """

    factor: float = 1.0
    clean: int = 0
    by: float = 1.5
    every: int = 20


AT_FULL_SPEED = SlowDown()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChats:
    """The new chats that a service allows (SPEC N3): `left` until `until`, then `size` in each further cycle.

    None is any number. Before `locked_until` there are none.
    """

    left: int | None = None
    until: datetime | None = None
    size: int = 0
    locked_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """An account with its runs; nothing leaves before `free_at`, nor outside its own `hours`.

    Runs of the same rank go in their order here. `people` has what is left of the limits of new people, by action; an
    action that is not in it has none.
    """

    zone: str
    allowances: Mapping[str, Allowance]
    jobs: Sequence[Job]
    free_at: datetime | None = None
    slow_down: SlowDown = AT_FULL_SPEED
    hours: Window | None = None
    people: Mapping[str, Allowance] = field(default_factory=dict)
    new_chats: NewChats = NewChats()


class PauseCause(StrEnum):
    """The reason why a run would wait."""

    WINDOW = "window"  # its window is closed
    DAILY_CAP = "daily_cap"  # the account has reached its daily cap
    SPAN_CAP = "span_cap"  # or the cap of 24 hours, 7 or 30 days
    OTHER_RUNS = "other_runs"  # the account serves another run first
    NEW_PEOPLE = "new_people"  # the rest are new people, who have no place before the next days
    NEW_CHATS = "new_chats"  # the service allows no new chats
    PLANNED = "planned"  # the rest has later times: a drip, or work that moved off a full day


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The run waits from `at` until `until` with `done` targets served; no end means not within a year."""

    at: datetime
    until: datetime | None
    cause: PauseCause
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The number of targets served by this time; between two points the line is straight."""

    at: datetime
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The forecast timeline of a run. No `starts_at` or `finishes_at` means not within a year.

    `people` is the curve of the new people alone; it is empty where there are none.
    """

    starts_at: datetime | None
    finishes_at: datetime | None
    pauses: tuple[Pause, ...] = ()
    curve: tuple[Point, ...] = ()
    people: tuple[Point, ...] = ()
