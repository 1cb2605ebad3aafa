"""The due moments of a reminder: once, or by a cron expression on the wall clock of its own zone (SPEC S1). Pure.

A cron expression names readings of the wall clock, and each reading is one due moment, also around a clock change:

- A reading that a clock change skips is due at the first instant after the jump. Several readings in the same jump
  are one moment.
- A reading that comes twice is due only the first time: "every ten minutes" rests for the hour that is repeated, as
  people who read the clock would otherwise get 2:10 twice.

Every function takes aware datetimes and returns aware UTC.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

from cronsim import CronSim, CronSimError

from delivery.window import first_instant, zone_of

FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
RANGES = ("0 to 59", "0 to 23", "1 to 31, L or LW", "1 to 12 or JAN to DEC", "0 to 7 or SUN to SAT")
EXAMPLE = "“0 9 * * 1-5” is 9:00 from Monday to Friday"
MOST_COUNTED = 1000
HOUR = timedelta(hours=1)
SAMPLE = 62  # moments that are compared: every minute of an hour, and the next
MOST_OF_A_DAY = 24 * 60
FARTHEST_YEARS = 5

# The library itself writes “the 31th day”.
ORDINALS = {"21th": "21st", "22th": "22nd", "23th": "23rd", "31th": "31st"}
ODD_ORDINAL = re.compile(r"\b(?:21|22|23|31)th\b")


class BadCronError(ValueError):
    """An invalid cron expression. The text is for the operator who wrote it."""


def too_far(at: datetime, now: datetime) -> str:
    """Return why a moment is too far ahead to plan for, as after a mistyped year; empty if it is not."""
    if at.year <= now.year + FARTHEST_YEARS:
        return ""
    return f"This time is in the year {at.year}. Choose one within {FARTHEST_YEARS} years."


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """Due at one moment."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """Due whenever the wall clock of `zone` reads what `cron` says."""

    cron: str
    zone: str


Timetable = Once | Repeating


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The moments that have come: the one that fires, unless all are too late, and those that were missed.

    Above MOST_COUNTED missed moments are no longer counted: `missed` is one more, and `last_missed` is that moment.
    """

    fires: datetime | None
    missed: int = 0
    first_missed: datetime | None = None
    last_missed: datetime | None = None


def next_moment(timetable: Timetable, *, after: datetime) -> datetime | None:
    """Return the first due moment after `after`, or None when there is none."""
    return next(_moments(timetable, after), None)


def upcoming(timetable: Timetable, *, after: datetime, count: int = 5) -> list[datetime]:
    """Return the next due moments, for pages."""
    return list(islice(_moments(timetable, after), count))


def crowded(timetable: Timetable, *, after: datetime) -> tuple[timedelta, int] | None:
    """Return the shortest gap of a schedule that comes more often than once an hour, and its moments in a day."""
    few = upcoming(timetable, after=after, count=SAMPLE)
    gaps = [later - earlier for earlier, later in pairwise(few)]
    if not gaps or min(gaps) >= HOUR:
        return None
    day = upcoming(timetable, after=after, count=MOST_OF_A_DAY)
    return min(gaps), sum(1 for moment in day if moment <= after + 24 * HOUR)


def has_moment(timetable: Timetable, moment: datetime) -> bool:
    """Return whether `moment` is one of its due moments."""
    return next_moment(timetable, after=moment - timedelta(microseconds=1)) == moment


def backlog(timetable: Timetable, *, due_at: datetime, now: datetime, lateness: timedelta) -> Backlog:
    """Decide about `due_at`, which has come, and all moments since.

    The newest moment fires if it is less than `lateness` late. All earlier ones are missed: firing them too would
    send the same message several times.
    """
    past = _between(timetable, due_at, now, most=MOST_COUNTED + 1)
    fresh = _between(timetable, max(due_at, now - lateness + datetime.resolution), now)
    fires = fresh[-1] if fresh else None
    missed = [moment for moment in past if moment != fires]
    if not missed:
        return Backlog(fires=fires)
    return Backlog(fires=fires, missed=len(missed), first_missed=missed[0], last_missed=missed[-1])


def instant_of(wall: datetime, zone: str) -> datetime:
    """Return the instant at which a clock in `zone` shows `wall` for the first time, or jumps over it."""
    return first_instant(zone_of(zone), wall.replace(tzinfo=None))


def check_cron(cron: str) -> None:
    """Raise BadCronError for an expression that is invalid or never comes, with what to write instead."""
    if next(_readings(cron, datetime(2026, 1, 1)), None) is None:  # noqa: DTZ001 - a reading of a wall clock
        raise BadCronError(f"“{cron}” never comes: there is no such day. Choose another day or month.")


def in_words(cron: str) -> str:
    """Return the meaning of an expression: “At 09:00 on Monday through Friday”."""
    check_cron(cron)
    words = str(_parsed(cron, datetime(2026, 1, 1)).explain())  # noqa: DTZ001 - as above
    return ODD_ORDINAL.sub(lambda odd: ORDINALS[odd[0]], words)


def _between(
    timetable: Timetable, first: datetime, last: datetime, *, most: int | None = None
) -> list[datetime]:
    """Return the moments from `first` to `last`, or the first `most` of them."""
    moments = _moments(timetable, first - timedelta(microseconds=1))
    return list(islice(takewhile(lambda moment: moment <= last, moments), most))


def _moments(timetable: Timetable, after: datetime) -> Iterator[datetime]:
    if isinstance(timetable, Once):
        return iter([timetable.at.astimezone(UTC)] if timetable.at > after else [])
    return _repeating(timetable, after)


def _repeating(timetable: Repeating, after: datetime) -> Iterator[datetime]:
    """Yield the instants of the readings after `after`; readings in order give instants in order.

    Only during a repeated hour do the next readings lie in the past: their first time is over.
    """
    zone = zone_of(timetable.zone)
    latest = after
    for reading in _readings(timetable.cron, after.astimezone(zone).replace(tzinfo=None)):
        instant = first_instant(zone, reading)
        if instant > latest:
            latest = instant
            yield instant


def _readings(cron: str, after: datetime) -> Iterator[datetime]:
    """Yield readings of the clock, without a zone; ends when an expression matches no day in fifty years."""
    return iter(_parsed(cron, after))


def _parsed(cron: str, after: datetime) -> CronSim:
    fields = cron.split()
    if len(fields) != len(FIELDS):
        raise BadCronError(
            f"“{cron}” has {len(fields)} of the five fields: {', '.join(FIELDS)}. For example, {EXAMPLE}."
        )
    try:
        return CronSim(cron, after)
    except CronSimError as error:
        raise BadCronError(_what_is_wrong(fields, error)) from error


def _what_is_wrong(fields: list[str], error: CronSimError) -> str:
    if "day-of-month" in str(error) and _is_cron([*fields[:3], "*", fields[4]]):
        return f"No month of “{fields[3]}” has a day “{fields[2]}”, so it never fires. Choose another day or month."
    for number, name in enumerate(("minute", "hour", "day-of-month", "month", "day-of-week")):
        if name in str(error):
            return (
                f"“{fields[number]}” is not possible as the {FIELDS[number]}. Write {RANGES[number]}, "
                f"* for every one, 1-5 for a range, 1,15 for several or */10 for every tenth; {EXAMPLE}."
            )
    return f"“{' '.join(fields)}” is not a cron expression: {error}. For example, {EXAMPLE}."


def _is_cron(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), datetime(2000, 1, 1))  # noqa: DTZ001 - what a clock reads has no zone
    except CronSimError:
        return False
    return True
