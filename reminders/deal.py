"""What becomes of reminders that are due: fired, fired late, recorded as missed, skipped, or queued behind a run.

The caller holds their locks. All of them share each statement, however many there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from activity.models import Notification
from activity.notify import tell
from delivery import news
from delivery.fanout import Firing, make_runs, record_skipped
from delivery.models import Run
from delivery.window import BadWindowError
from reminders import sentences
from reminders.fire import freeze, load_for_freezing
from reminders.models import Reminder
from reminders.moments import Backlog, BadCronError, backlog, next_moment
from reminders.readiness import timetable_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A reminder that is due, and which of its moments have come."""

    reminder: Reminder
    backlog: Backlog


def deal(reminders: Sequence[Reminder], now: datetime) -> None:
    """Make the runs and records of all moments that have come by `now`, and move the reminders on to the next."""
    load_for_freezing(reminders)
    dues = [due for reminder in reminders if (due := _look_at(reminder, now)) is not None]
    missed = record_skipped(_new([_missed(due) for due in dues if due.backlog.missed]))
    going = _runs_going(due.reminder.pk for due in dues)
    fired = _new([_fired(due, going.get(due.reminder.pk, [])) for due in dues if due.backlog.fires])
    record_skipped([firing for firing in fired if firing.why_not])
    make_runs([firing for firing in fired if not firing.why_not])
    Reminder.objects.bulk_update(reminders, ["status", "next_fire_at"])
    transaction.on_commit(lambda: news.moments_missed(missed))


def lateness_limit() -> timedelta:
    return timedelta(minutes=settings.LATENESS_LIMIT_MINUTES)


def _look_at(reminder: Reminder, now: datetime) -> Due | None:
    """What has come due, and when it is due next; one whose times mean nothing is switched off."""
    timetable, due_at = timetable_of(reminder), reminder.next_fire_at
    if timetable is None or due_at is None:
        reminder.next_fire_at = None
        return None
    try:
        come = backlog(timetable, due_at=due_at, now=now, lateness=lateness_limit())
        reminder.next_fire_at = next_moment(timetable, after=now)
    except (BadCronError, BadWindowError) as error:
        _switch_off(reminder, str(error))
        return None
    if reminder.next_fire_at is None:
        reminder.status = Reminder.Status.DONE
    return Due(reminder=reminder, backlog=come)


def _switch_off(reminder: Reminder, why: str) -> None:
    key = f"reminder:{reminder.pk}:off:{reminder.next_fire_at}"
    reminder.status, reminder.next_fire_at = Reminder.Status.OFF, None
    transaction.on_commit(
        lambda: tell(
            reminder.owner_id,
            Notification.Kind.FAILED,
            key=key,
            title="Reminder switched off",
            body=f"{reminder}: {why} Then schedule it again.",
            url=f"/reminders/{reminder.pk}/",
        )
    )


def _missed(due: Due) -> Firing:
    """One record for all moments that were missed."""
    why = sentences.missed(due.backlog, due.reminder.zone, lateness_limit())
    return freeze(due.reminder, due_at=due.backlog.last_missed, why_not=why)


def _fired(due: Due, going: Sequence[Run]) -> Firing:
    """The firing, or its record where `going` are in the way; at most one run waits behind another."""
    moment = due.backlog.fires
    if not going:
        return freeze(due.reminder, due_at=moment)
    if due.reminder.on_overlap == Reminder.OnOverlap.QUEUE and len(going) == 1:
        return freeze(due.reminder, due_at=moment, behind=going[0].pk)
    return freeze(due.reminder, due_at=moment, why_not=sentences.overlapped(going))


def _runs_going(reminder_ids: Iterable[int]) -> dict[int, list[Run]]:
    """The open runs of reminders, the oldest first; second messages and follow-ups are in nobody's way."""
    rows = Run.objects.open().filter(reminder__in=list(reminder_ids), kind=Run.Kind.REMINDER)
    going: dict[int, list[Run]] = {}
    for run in rows.only("pk", "reminder_id", "status").order_by("pk"):
        going.setdefault(run.reminder_id, []).append(run)
    return going


def _new(firings: Sequence[Firing]) -> list[Firing]:
    """Those whose moment has no run yet: a clock that was set back lets a moment come again."""
    moments = Run.objects.filter(
        reminder__in=[firing.reminder_id for firing in firings],
        due_at__in=[firing.due_at for firing in firings],
    )
    run = set(moments.values_list("reminder_id", "due_at")) if firings else set()
    return [firing for firing in firings if (firing.reminder_id, firing.due_at) not in run]
