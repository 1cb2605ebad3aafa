"""Switches reminders on and off, for every page, action and command, and sets when each is due next.

`Reminder.next_fire_at` is all that the tick reads. It is set here and, when a moment has been handled, in `due.py`,
both under the reminder's lock.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.approvals.requests import close_of
from accounts.models import Role, User
from accounts.roles import require_touch
from audit.record import differing, record, stored, values_of
from reminders.approvals.asking import Kind, ask_to_schedule
from reminders.drafts import locked_to_edit
from reminders.models import Reminder
from reminders.moments import has_moment, next_moment
from reminders.readiness import NotReadyError, problems, timetable_of

ON = Reminder.Status.SCHEDULED
TIMES = (
    *("schedule", "fire_at", "cron", "zone", "window_start_hour", "window_end_hour", "send_days"),
    *("on_close", "on_overlap", "on_paused", "priority", "drip", "drip_gap_min", "drip_gap_max"),
)


@transaction.atomic
def schedule(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """Switch on the reminder as it is saved, or raise NotReadyError with everything that is wrong.

    A reminder that is fired by hand can then be fired. Doing it twice changes nothing.
    """
    reminder = _locked(reminder, by, Role.SEND)
    now = timezone.now()
    if wrong := problems(reminder, now=now):
        raise NotReadyError(wrong)
    before = {"status": reminder.status}
    reminder.next_fire_at = _next(reminder, now)
    reminder.status = ON
    reminder.save(update_fields=["status", "next_fire_at", "updated_at"])
    if before["status"] != ON:
        record("reminder.scheduled", reminder, by=by, before=before, after=told(reminder))
    if reminder.schedule != Reminder.Schedule.BY_HAND:
        ask_to_schedule(reminder, by=by)
    return reminder


@transaction.atomic
def reschedule(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """Update a reminder after an edit: a scheduled one follows its new times, any other stays as it is.

    Save and reschedule in one transaction, so that an edit after which it cannot be sent is refused as a whole.
    """
    reminder = _locked(reminder, by, Role.WRITE)
    return schedule(reminder, by=by) if reminder.status == ON else reminder


@transaction.atomic
def save_times(reminder: Reminder, *, by: User) -> Reminder:
    """Save the schedule and the hours that were set on `reminder`; a scheduled one follows them at once.

    An edit after which it cannot be sent is refused as a whole.
    """
    locked_to_edit(reminder, by=by)
    old, new = differing(stored(reminder, TIMES), values_of(reminder, TIMES))
    if new:
        record("reminder.changed", reminder, by=by, before=old, after=new)
    reminder.save(update_fields=[*TIMES, "updated_at"])
    return reschedule(reminder, by=by)


@transaction.atomic
def switch_off(reminder: Reminder, *, by: User | None = None) -> Reminder:
    """Stop further firings until it is scheduled again. An open run continues: cancel the run to stop it."""
    reminder = _locked(reminder, by, Role.SEND)
    if reminder.status == ON:
        record("reminder.switched_off", reminder, by=by, before={"next_fire_at": reminder.next_fire_at})
        reminder.status, reminder.next_fire_at = Reminder.Status.OFF, None
        reminder.save(update_fields=["status", "next_fire_at", "updated_at"])
    close_of(
        reminder.pk, [Kind.REMINDER, Kind.SEND], why="switched it off while it waited for approval.", by=by
    )
    return reminder


def told(reminder: Reminder) -> dict[str, Any]:
    """Return what somebody schedules, to record it: the texts, the accounts, the size of the audience, the times."""
    times = ("schedule", "fire_at", "cron", "zone", "window_start_hour", "window_end_hour", "send_days")
    return values_of(reminder, ("status", "next_fire_at", *times)) | {
        "texts": list(reminder.parts.values_list("text", flat=True)),
        "accounts": list(reminder.reminder_accounts.values_list("account_id", flat=True)),
        "tags": list(reminder.tags.values_list("name", flat=True)),
        "recipients_chosen_one_by_one": Reminder.recipients.through.objects.filter(reminder=reminder).count(),
    }


def _next(reminder: Reminder, now: datetime) -> datetime | None:
    """Return the next moment. One that has come and was not handled stays, unless the times were changed."""
    timetable = timetable_of(reminder)
    if timetable is None:
        return None
    waiting = reminder.next_fire_at
    if reminder.status == ON and waiting is not None and waiting <= now and has_moment(timetable, waiting):
        return waiting
    return next_moment(timetable, after=now)


def _locked(reminder: Reminder, by: User | None, role: Role) -> Reminder:
    """Return the reminder as it is now, locked until this transaction ends; raises PermissionDenied."""
    if by is not None:
        require_touch(reminder, by, role)
    return Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
