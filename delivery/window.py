"""Computes when messages may leave: the daily delivery window of a reminder, in its own time zone (SPEC W).

A window is written in hours of the wall clock and used as instants, so clock changes are handled here. On the
day of a clock change an hour may be missing or come twice; a zone that crosses the date line may skip a whole
day. One rule covers all of these: a window is one unbroken stretch in which the wall clock never reads a time
outside it:

- A start or an end that does not exist is the first instant after the missing stretch. A window that lies
  wholly inside it is empty, and that day is passed over.
- An end that comes twice is the first of the two. "Until 1:00" promises that nothing leaves once a clock on
  the wall has reached one; an hour lost once a year is the cheaper mistake.
- A start that comes twice is the first as well, unless the wall clock would then fall back below it; then it
  is the second.

Every function takes aware datetimes and returns aware UTC.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import count
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

EVERY_DAY = frozenset(range(7))
_TICK = timedelta.resolution
_FAR_OFF_DAYS = 14  # how far ahead windows that touch are joined into one


class BadWindowError(ValueError):
    """Raised for a window that is not possible; its text is for the operator who wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The hours from `start_hour` up to, but not including, `end_hour` on each of `days` (0 is Monday), in `zone`."""

    start_hour: int = 6
    end_hour: int = 18
    days: frozenset[int] = EVERY_DAY
    zone: str

    def __post_init__(self) -> None:
        _check_hours(self.start_hour, self.end_hour)
        _check_days(self.days)
        zone_of(self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The window is open: the run may send at once."""

    closes_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The window is still to open: the run waits for it."""

    opens_at: datetime
    closes_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The window of that day has closed: the run fails with nothing sent."""

    closed_at: datetime


Fired = Open | Waits | Missed


class CloseMove(StrEnum):
    """The move that a run makes when its window closes."""

    SETTLE = "settle"  # nothing is pending: the run has ended
    CARRY_ON = "carry_on"  # it waits for the next opening by itself
    PAUSE = "pause"  # it waits for a person to resume it
    FAIL = "fail"  # nothing was sent, so there is nothing to resume


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """One day's window as instants."""

    start: datetime
    end: datetime


def window_start_at(tz: str, start_hour: int, at: datetime) -> datetime:
    """Return when the window starts on the calendar day that `at` falls on in `tz`."""
    return _starts(zone_of(tz), _local_day(zone_of(tz), at), start_hour)


def window_end_at(tz: str, end_hour: int, at: datetime) -> datetime:
    """Return when the window ends on the calendar day that `at` falls on in `tz`; hour 24 is the next midnight.

    The result is in the past where `at` is after that day's end.
    """
    return _ends(zone_of(tz), _local_day(zone_of(tz), at), end_hour)


def is_open(window: Window, now: datetime) -> bool:
    """Decide whether a message may leave at `now`."""
    return _open_or_next(window, now).start <= now


def opens_at(window: Window, now: datetime) -> datetime:
    """Return the first moment from `now` on at which a message may leave: `now` itself while the window is open."""
    return max(_open_or_next(window, now).start, now.astimezone(UTC))


def closes_at(window: Window, now: datetime) -> datetime:
    """Return the end of the window that is open at `now`, or else of the next one."""
    return _open_or_next(window, now).end


MOST_LOOKS = 60  # at least four weeks: what is not open together by then never is


def all_open_at(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return the first moment from `now` on at which all windows are open; None where there is none."""
    at = now.astimezone(UTC)
    for _ in range(MOST_LOOKS):
        later = max(opens_at(window, at) for window in windows)
        if later == at:
            return at
        at = later
    return None


def first_close(windows: Sequence[Window], at: datetime) -> datetime:
    """Return when the first of the windows closes that are all open at a moment."""
    return min(closes_at(window, at) for window in windows)


def last_close(window: Window, now: datetime) -> datetime:
    """Return when the window that is open at `now` closes; windows that touch, as from 0 to 24, are one."""
    end = closes_at(window, now)
    for _ in range(_FAR_OFF_DAYS):
        if not is_open(window, end):
            break
        end = closes_at(window, end)
    return end


def sendable_until(window: Window, now: datetime, guard_seconds: float) -> datetime:
    """Return the moment before which a message must begin, so that it arrives before the window ends.

    `guard_seconds` is the time a message may take to arrive. The window is the one that is open at `now`, or else the
    next one. With a guard longer than the window itself the result lies before the opening, and nothing fits.
    """
    if guard_seconds < 0:
        raise ValueError(f"A guard of {guard_seconds} s would let messages arrive after the window's end.")
    return closes_at(window, now) - timedelta(seconds=guard_seconds)


def on_fire(window: Window, now: datetime) -> Fired:
    """Return the first move of a run that is fired at `now` (W3, W4).

    A run fired after that day's end has missed its window: waiting for tomorrow's would deliver yesterday's
    reminder. A day without a window, because it is not a send day or a clock change removed the hours, has
    no end to be late for: "every day at 9" with Monday to Friday asks for Monday's window on a Saturday.
    """
    today = _span(window, _local_day(zone_of(window.zone), now))
    if today is not None and today.end <= now:
        return Missed(closed_at=today.end)
    span = _open_or_next(window, now)
    if span.start <= now:
        return Open(closes_at=span.end)
    return Waits(opens_at=span.start, closes_at=span.end)


def on_close(
    *, sent: int, pending: int, resumes_by_itself: bool, planned_later: bool = False, day_full: bool = False
) -> CloseMove:
    """Return the move of a run when its window closes with `pending` targets left (W4, W5, W6).

    `planned_later` says that all pending targets are planned for a later day. In a drip this happens on most evenings:
    the day went to plan and no person is asked. Where a daily cap is reached (`day_full`), a person is asked, and there
    is something to resume even if nothing was sent. `sent` counts every target that has left or may have left, so a run
    with unconfirmed targets is paused rather than failed.
    """
    if pending == 0:
        return CloseMove.SETTLE
    if resumes_by_itself:
        return CloseMove.CARRY_ON
    if day_full:
        return CloseMove.PAUSE
    if planned_later:
        return CloseMove.CARRY_ON
    return CloseMove.PAUSE if sent else CloseMove.FAIL


def _open_or_next(window: Window, now: datetime) -> _Span:
    """Return the window that is open at `now`, or the next one to open.

    Looking from today on is enough: an earlier day's window ends by the first midnight after it, which `now`
    has passed.
    """
    return next(span for span in _spans_from(window, _local_day(zone_of(window.zone), now)) if now < span.end)


def _spans_from(window: Window, day: date) -> Iterator[_Span]:
    for ahead in count():
        span = _span(window, day + timedelta(days=ahead))
        if span is not None:
            yield span


def _span(window: Window, day: date) -> _Span | None:
    """Return the window of `day`, or None where that day has none."""
    if day.weekday() not in window.days:
        return None
    zone = zone_of(window.zone)
    span = _Span(start=_starts(zone, day, window.start_hour), end=_ends(zone, day, window.end_hour))
    return span if span.start < span.end else None


def _starts(zone: ZoneInfo, day: date, hour: int) -> datetime:
    wall = _wall(day, hour)
    if _comes_twice(zone, wall) and _comes_twice(zone, wall - _TICK):
        # The repeated stretch begins before `wall`: after the first one the clock falls back below it.
        return _instant(zone, wall, fold=1)
    return first_instant(zone, wall)


def _ends(zone: ZoneInfo, day: date, hour: int) -> datetime:
    return first_instant(zone, _wall(day, hour))


def _wall(day: date, hour: int) -> datetime:
    """Return the reading of a wall clock, without a zone; hour 24 is the next day's midnight."""
    return datetime.combine(day, time()) + timedelta(hours=hour)


def first_instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """Return the first instant at which a clock in `zone` reads `wall`, or jumps over it."""
    with_old, with_new = _instant(zone, wall, fold=0), _instant(zone, wall, fold=1)
    if with_old <= with_new:
        return with_old
    # A `wall` that does not exist: read with the offset of either side it lands on the other side of the jump
    # (PEP 495), so the jump is in between.
    seconds = range(int(with_new.timestamp()), int(with_old.timestamp()) + 1)
    jump = bisect_left(seconds, True, key=lambda second: _reads(zone, second) >= wall)
    return datetime.fromtimestamp(seconds[jump], UTC)


def _comes_twice(zone: ZoneInfo, wall: datetime) -> bool:
    return _instant(zone, wall, fold=0) < _instant(zone, wall, fold=1)


def _instant(zone: ZoneInfo, wall: datetime, *, fold: int) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _reads(zone: ZoneInfo, second: int) -> datetime:
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None)


def _local_day(zone: ZoneInfo, at: datetime) -> date:
    if at.utcoffset() is None:
        raise ValueError(f"{at} has no time zone, so it is not a moment.")
    return at.astimezone(zone).date()


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        # ZoneInfo opens a file: a folder, a path outside or a name too long fail in as many ways.
        raise BadWindowError(
            f"“{name}” is not a time zone. Write it like Asia/Kuala_Lumpur or Europe/Berlin."
        ) from error


def _check_hours(start: int, end: int) -> None:
    if not (0 <= start <= 24 and 0 <= end <= 24):
        raise BadWindowError(f"Delivery hours go from 0 to 24, not from {start} to {end}.")
    if start > end:
        raise BadWindowError(
            f"A window from {start}:00 to {end}:00 would run overnight, which is not possible. "
            f"Make two reminders, one until 24 and one from 0, or choose an end later than the start."
        )
    if start == end:
        raise BadWindowError(f"A window from {start}:00 to {end}:00 is never open. Choose a later end hour.")


def _check_days(days: frozenset[int]) -> None:
    if not days:
        raise BadWindowError("Choose at least one day to send on.")
    if not days <= EVERY_DAY:
        raise BadWindowError(f"Send days go from 0 (Monday) to 6 (Sunday), not {sorted(days - EVERY_DAY)}.")


NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = tuple((1 << number, name) for number, name in enumerate(NAMES))


def day_names(bits: int) -> str:
    """Return the days in words: Mon, Tue, Fri."""
    chosen = [name[:3] for bit, name in DAYS if bits & bit]
    return "Every day" if len(chosen) == len(DAYS) else ", ".join(chosen)


def days_of(bits: int) -> frozenset[int]:
    """Return the days as this module takes them; 0 is Monday."""
    return frozenset(day for day in range(7) if bits & 1 << day)
