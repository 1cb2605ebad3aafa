"""The days of an account: the room of each day, days with too much work, and a place for planned work. Pure.

A target is planned inside its run's window and send days, and under the cap of the account's own day (SPEC S3).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from delivery.window import Window, all_open_at, first_close, window_end_at

LAST_MINUTE = timedelta(minutes=1)  # last part of a window: targets planned in it might not leave in time
FURTHEST = 40 * 366  # days; a longer plan means a mistake in the limits

Room = Callable[[int, Collection[int]], int | None]
"""Messages that may still leave on a day, by its number from today, given the days that have work; None: any number."""
Spacing = tuple[float, float]  # the shortest and the longest seconds between two targets


class NoRoomError(ValueError):
    """Raised for a plan that no day has room for; its text is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Room for a number of targets from a moment on."""

    at: datetime
    targets: int


class Diary:
    """The days of an account, with its own hours. Planned work is entered, and takes up room of its day."""

    def __init__(self, *, zone: str, now: datetime, room: Room, hours: Window | None = None) -> None:
        self._hours = () if hours is None else (hours,)
        self._zone_name = zone
        self._zone = ZoneInfo(zone)
        self._now = now.astimezone(UTC)
        self._today = self._date(now)
        self._room = room
        self._entered: Counter[int] = Counter()

    def day_of(self, at: datetime) -> int:
        """Return the number of a day, counted from today."""
        return (self._date(at) - self._today).days

    def room(self, day: int) -> int | None:
        room = self._room(day, self._entered)
        return None if room is None else max(0, room - self._entered[day])

    def enter(self, day: int, messages: int) -> None:
        if messages:
            self._entered[day] += messages

    def openings(self, window: Window, *, parts: int, targets: int, after: datetime) -> list[Slot]:
        """Yield slots for targets that may leave together, each from the moment when a day has room for them."""
        slots = []
        for at, _, fitting in self._days(window, parts, after):
            count = targets if fitting is None else min(targets, fitting)
            slots.append(Slot(at=at, targets=count))
            self.enter(self.day_of(at), count * parts)
            targets -= count
            if targets == 0:
                return slots
        raise AssertionError("the days of a diary do not end")

    def drip(
        self,
        window: Window,
        *,
        parts: int,
        targets: int,
        after: datetime,
        spacing: Spacing,
        rng: random.Random,
    ) -> list[datetime]:
        """Return a time for every target, a random spacing apart; later days begin at an irregular time."""
        times: list[datetime] = []
        earliest = after
        for opens, closes, fitting in self._days(window, parts, after):
            at = opens if opens == after else max(earliest, opens + self._late(opens, closes, spacing, rng))
            most = targets if fitting is None else min(targets, len(times) + fitting)
            while len(times) < most and at < closes:
                times.append(at)
                self.enter(self.day_of(at), parts)
                at = earliest = at + timedelta(seconds=rng.uniform(*spacing))
            if len(times) == targets:
                return times
        raise AssertionError("the days of a diary do not end")

    def _days(
        self, window: Window, parts: int, after: datetime
    ) -> Iterator[tuple[datetime, datetime, int | None]]:
        """Yield stretches with room, each in one window and on one day: start, end, and for how many targets."""
        at = max(after, self._now).astimezone(UTC)
        while True:
            at = self._open_at(window, at)
            day, midnight = self.day_of(at), window_end_at(self._zone_name, 24, at)
            if day > FURTHEST:
                raise NoRoomError(
                    "No day has room for this message. Raise the daily cap, or use fewer parts."
                )
            closes = min(first_close((window, *self._hours), at) - LAST_MINUTE, midnight)
            room = self.room(day)
            fitting = None if room is None else room // parts
            if at < closes and fitting != 0:
                yield at, closes, fitting
            at = midnight if fitting == 0 else min(closes + LAST_MINUTE, midnight)

    def _open_at(self, window: Window, at: datetime) -> datetime:
        opens = all_open_at((window, *self._hours), at)
        if opens is None:
            raise NoRoomError(
                "The account's working hours are never within the delivery hours. Change one of them."
            )
        return opens

    def _late(self, opens: datetime, closes: datetime, spacing: Spacing, rng: random.Random) -> timedelta:
        """Return by how much the first target of a day comes after the opening."""
        return min((closes - opens) / 2, timedelta(seconds=rng.uniform(0, spacing[0])))

    def _date(self, at: datetime) -> date:
        return at.astimezone(self._zone).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The targets that a run has planned for a day, and the messages per target."""

    run_id: int
    day: int
    targets: int
    parts: int

    @property
    def messages(self) -> int:
        return self.targets * self.parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """The part of a load that does not fit into its day: all but the first `stays` targets."""

    load: Load
    stays: int

    @property
    def targets(self) -> int:
        return self.load.targets - self.stays


def over(loads: Iterable[Load], room: Room) -> Mapping[int, int]:
    """Return the days that have too much planned, each with its number of messages."""
    planned: dict[int, int] = defaultdict(int)
    for load in loads:
        planned[load.day] += load.messages
    return {day: count for day, count in sorted(planned.items()) if _above(count, room(day, planned))}


def overflows(loads: Sequence[Load], room: Room) -> list[Overflow]:
    """Return the work to move so that no day, and no span of days, has too much; the first loads in `loads` stay."""
    kept = Counter({load.day: 0 for load in loads})
    found = []
    for load in loads:
        space = room(load.day, kept)
        left = load.messages if space is None else max(0, space - kept[load.day])
        stays = min(load.targets, left // load.parts)
        kept[load.day] += stays * load.parts
        if stays < load.targets:
            found.append(Overflow(load=load, stays=stays))
    return found


def _above(count: int, room: int | None) -> bool:
    return room is not None and count > room
