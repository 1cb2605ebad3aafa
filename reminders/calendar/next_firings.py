"""The next firings of all reminders, in the order of time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice

from django.db.models import QuerySet

from reminders.models import Reminder
from reminders.moments import in_words, upcoming
from reminders.readiness import timetable_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A moment at which a reminder will fire, unless it is edited before."""

    at: datetime
    reminder: Reminder


def next_firings(reminders: QuerySet[Reminder], *, most: int) -> list[Firing]:
    """Return the next `most` firings of `reminders`, as they are scheduled now."""
    # Other reminders have no firing among the first: the first one of each is no earlier than these.
    soonest = reminders.filter(status=Reminder.Status.SCHEDULED, next_fire_at__isnull=False)
    soonest = soonest.order_by("next_fire_at", "pk")[:most]
    ahead = merge(*(_firings(reminder, most) for reminder in soonest), key=lambda firing: firing.at)
    return list(islice(ahead, most))


def grouped(reminders: QuerySet[Reminder], *, most: int, each: int) -> list[list[Firing]]:
    """Return the first `each` firings of the `most` reminders that fire next, so that none crowds out the others."""
    soonest = reminders.filter(status=Reminder.Status.SCHEDULED, next_fire_at__isnull=False)
    soonest = soonest.order_by("next_fire_at", "pk")[:most]
    return [firings for reminder in soonest if (firings := list(_firings(reminder, each)))]


def rhythm(reminder: Reminder) -> str:
    """Return the schedule in words."""
    match reminder.schedule:
        case Reminder.Schedule.CRON:
            return in_words(reminder.cron)
        case Reminder.Schedule.ONCE:
            return "Once"
        case _:
            return "Manual"


def _firings(reminder: Reminder, most: int) -> Iterator[Firing]:
    timetable, first = timetable_of(reminder), reminder.next_fire_at
    if timetable is not None and first is not None:
        for moment in upcoming(timetable, after=first - timedelta(microseconds=1), count=most):
            yield Firing(at=moment, reminder=reminder)
