"""Switches reminders on and off, for every page, action and command alike, and says when each is due next.

`Reminder.next_fire_at` is all that the tick looks at. It is set here and, once a moment has been dealt with, in
`deal.py`, both under the reminder's lock.
"""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from accounts.roles import require_touch
from reminders.models import Reminder
from reminders.moments import has_moment, next_moment
from reminders.readiness import NotReadyError, problems, timetable_of

ON = Reminder.Status.SCHEDULED


@transaction.atomic
def schedule(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """Switch it on as it is saved, or refuse with all that is still wrong with it.

    One that is fired by hand is then ready to be. Doing it twice changes nothing.
    """
    reminder = _locked(reminder, by)
    now = timezone.now()
    if wrong := problems(reminder, now=now):
        raise NotReadyError(wrong)
    reminder.next_fire_at = _next(reminder, now)
    reminder.status = ON
    reminder.save(update_fields=["status", "next_fire_at", "updated_at"])
    return reminder


@transaction.atomic
def reschedule(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """After an edit: one that is switched on follows its new times, any other stays as it is.

    Save and reschedule in one transaction, so that an edit which leaves it unfit to be sent is refused whole.
    """
    reminder = _locked(reminder, by)
    return schedule(reminder, by=by) if reminder.status == ON else reminder


@transaction.atomic
def switch_off(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """No more firings until it is scheduled again. A run that is under way goes on: cancel it for that."""
    reminder = _locked(reminder, by)
    if reminder.status == ON:
        reminder.status, reminder.next_fire_at = Reminder.Status.OFF, None
        reminder.save(update_fields=["status", "next_fire_at", "updated_at"])
    return reminder


def _next(reminder: Reminder, now: datetime) -> datetime | None:
    """A moment that has come and was not dealt with yet stays, unless the reminder was moved to other times."""
    timetable = timetable_of(reminder)
    if timetable is None:
        return None
    waiting = reminder.next_fire_at
    if reminder.status == ON and waiting is not None and waiting <= now and has_moment(timetable, waiting):
        return waiting
    return next_moment(timetable, after=now)


def _locked(reminder: Reminder, by: User | None) -> Reminder:
    """The reminder as it is now, held until this transaction ends; refuses those who may not touch it."""
    if by is not None:
        require_touch(reminder, by)
    return Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
