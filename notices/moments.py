"""When a notice is sent. Pure.

1. What is gathered waits for its hour or for the time of the day.
2. The same kind about the same thing is told at most every half hour: what comes meanwhile waits, and is told as one.
3. One address gets at most one message a minute: what comes meanwhile goes together.
4. What falls into quiet hours waits for their end.

Quiet hours are read from the clock on the person's wall, also on the days on which it is changed: where an hour comes
twice, both are quiet; where the end is left out, the quiet ends when the clock has passed it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

SAME_APART = timedelta(minutes=30)
APART = timedelta(minutes=1)
AT_ONCE, HOURLY, DAILY = "at_once", "hourly", "daily"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Hours of the day, by the clock on the wall, in which a person is not disturbed; they may pass midnight."""

    start: time
    end: time

    def holds_at(self, wall: time) -> bool:
        if self.start <= self.end:
            return self.start <= wall < self.end
        return wall >= self.start or wall < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When one address of a person may be used."""

    zone: tzinfo
    rhythm: str
    daily_at: time
    quiet: Quiet | None = None


def due_at(
    now: datetime,
    rules: Rules,
    *,
    same_sent_at: datetime | None = None,
    last_sent_at: datetime | None = None,
) -> datetime:
    """Return when something that happens now is sent.

    `same_sent_at` is when the address was last told the same kind about the same thing, `last_sent_at` when it was
    last told anything.
    """
    found = gathered(now, rules)
    if same_sent_at is not None:
        found = max(found, same_sent_at + SAME_APART)
    if last_sent_at is not None:
        found = max(found, last_sent_at + APART)
    return after_quiet(found, rules)


def gathered(now: datetime, rules: Rules) -> datetime:
    """Return the end of the span that is gathered into one message; now, where nothing is gathered."""
    if rules.rhythm == HOURLY:
        return now + _to_the_full_hour(now.astimezone(rules.zone))
    if rules.rhythm == DAILY:
        return next(each for each in walls(rules.daily_at, rules.zone, now) if each > now)
    return now


def after_quiet(moment: datetime, rules: Rules) -> datetime:
    """Return the moment itself, or the end of the quiet hours that it falls into."""
    if rules.quiet is None or not is_quiet(moment, rules.quiet, rules.zone):
        return moment
    ends = walls(rules.quiet.end, rules.zone, moment)
    return next(end for end in ends if end > moment and not is_quiet(end, rules.quiet, rules.zone))


def is_quiet(moment: datetime, quiet: Quiet, zone: tzinfo) -> bool:
    return quiet.holds_at(moment.astimezone(zone).time())


def walls(wall: time, zone: tzinfo, near: datetime) -> Iterator[datetime]:
    """Yield the moments around `near` at which the clock on the wall shows this time, in their order."""
    day = near.astimezone(zone).date() - timedelta(days=1)
    for number in range(5):
        date = day + timedelta(days=number)
        both = {datetime.combine(date, wall.replace(fold=fold), zone).astimezone(UTC) for fold in (0, 1)}
        yield from sorted(both)


def _to_the_full_hour(local: datetime) -> timedelta:
    gone = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return timedelta(hours=1) - gone
