"""Fires due reminders, each moment once, with every tick (SPEC S1).

A reminder whose `next_fire_at` has come is locked, handled and set to its next moment in one transaction: two ticks
share the work and never take the same reminder, a crash leaves it due, and an edit comes before or after. If a moment
ever comes back, the database refuses a second run for it.

1. Check whether anything is due, or any run waits behind another: one query, and usually that is all.
2. Choose a batch, owners in turn, and lock it, skipping reminders that another tick holds.
3. Decide for each: fire, fire late, record as missed, skip or queue behind a run that is still open; what needs a
   second person and was not approved is recorded as skipped.
4. Make all runs and records of the batch together, and set the reminders to their next moments.
5. If that fails, handle the batch one by one: a reminder that cannot be handled stays due, delays no other, and is
   recorded as missed when it is too late for it.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Exists, OuterRef, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from activity.models import Notification
from activity.notify import tell
from config.long_tasks import firings
from delivery import lifecycle, notifications
from delivery.fanout import Firing, make_runs, record_skipped
from delivery.models import Run
from delivery.window import BadWindowError
from reminders import sentences
from reminders.approvals import due_moments
from reminders.fire import freeze, load_for_freezing
from reminders.models import Reminder
from reminders.moments import Backlog, BadCronError, backlog, next_moment
from reminders.readiness import timetable_of

log = structlog.get_logger(__name__)

BATCH = 100
FEW = 5  # reminders of one owner in a batch
MOST_WAITING = 500
SHIFT_SECONDS = 10  # then the next tick continues: a few ticks share a long backlog, not ever more of them

ANYTHING = """
SELECT EXISTS (SELECT 1 FROM reminders_reminder WHERE status = 'scheduled' AND next_fire_at <= %(now)s),
       EXISTS (SELECT 1 FROM delivery_run WHERE status = 'queued' AND opens_at IS NULL)
"""


def tick() -> None:
    """Fire everything that is due now."""
    with connection.cursor() as cursor:
        cursor.execute(ANYTHING, {"now": timezone.now()})
        due, waiting = cursor.fetchone()
    if due:
        fire_due()
    if waiting:
        start_waiting()


def fire_due() -> None:
    """Fire one batch after another until nothing is due, or the time of this tick is over."""
    ends, stuck = time.monotonic() + SHIFT_SECONDS, set[int]()
    while time.monotonic() < ends:
        taken, failed = _handle_batch(stuck)
        stuck |= failed
        if taken < BATCH:
            break


def start_waiting() -> None:
    """Start the runs that waited for the last run of their reminder, where that run has ended.

    They also start if it was paused meanwhile, and the reminder says that paused runs hold nothing up.
    """
    earlier = Run.objects.filter(reminder=OuterRef("reminder"), kind=Run.Kind.REMINDER, pk__lt=OuterRef("pk"))
    passed = Run.objects.waiting_for_a_person().filter(reminder__on_paused=Reminder.OnPaused.RUN)
    ahead = earlier.in_the_way().exclude(pk__in=passed.values("pk"))
    for run in Run.objects.behind().filter(~Exists(ahead)).order_by("pk")[:MOST_WAITING]:
        lifecycle.start_waiting(run)


def _handle_batch(stuck: Collection[int]) -> tuple[int, set[int]]:
    """Return how many reminders were chosen, and the ids of those that were not handled in this tick.

    Owners with few reminders are served first and together. An owner with many gets a separate transaction and a
    separate place: otherwise the fan-outs of one owner would delay everybody's.
    """
    few, many = _by_owner(_chosen(without=stuck))
    left = _handle_together(few) if few else set()
    for owner, ids in many.items():
        if firings().take(owner):
            left |= set(ids)  # for the next tick
            continue
        try:
            left |= _handle_together(ids)
        finally:
            firings().give_back(owner)
    return len(few) + sum(len(ids) for ids in many.values()), left


def _chosen(*, without: Collection[int]) -> list[tuple[int, int]]:
    """Choose due reminders, owners in turn; return each reminder with its owner."""
    due = Reminder.objects.due(timezone.now()).exclude(pk__in=without)
    turn = Window(RowNumber(), partition_by="owner", order_by=["next_fire_at", "pk"])
    rows = due.annotate(turn=turn).order_by("turn", "next_fire_at", "pk")
    return list(rows.values_list("pk", "owner")[:BATCH])


def _by_owner(chosen: Sequence[tuple[int, int]]) -> tuple[list[int], dict[int, list[int]]]:
    """Split into the reminders of owners who have a few, and the others by their owner."""
    grouped: dict[int, list[int]] = {}
    for reminder_id, owner in chosen:
        grouped.setdefault(owner, []).append(reminder_id)
    few = [each for ids in grouped.values() if len(ids) <= FEW for each in ids]
    return few, {owner: ids for owner, ids in grouped.items() if len(ids) > FEW}


def _handle_together(ids: Sequence[int]) -> set[int]:
    """Handle all reminders in one transaction, or else one by one; return those that were not handled.

    Reminders locked by another tick are among these: this tick continues with others instead of choosing them again.
    """
    try:
        with transaction.atomic():
            taken = _take(ids)
            handle(taken, timezone.now())
    except (InterfaceError, OperationalError):
        raise  # the database is away, or ended this transaction in a deadlock: the next tick tries again
    except Exception:
        log.exception("firing_one_by_one", reminders=len(ids))
        return set(_handle_one_by_one(ids))
    return set(ids) - {reminder.pk for reminder in taken}


def _handle_one_by_one(ids: Sequence[int]) -> Iterator[int]:
    """Yield the reminders that cannot be handled even alone."""
    for reminder_id in ids:
        try:
            with transaction.atomic():
                handle(_take([reminder_id]), timezone.now())
        except Exception:
            log.exception("firing_failed", reminder=reminder_id)
            yield reminder_id


def _take(ids: Sequence[int]) -> list[Reminder]:
    """Lock the reminders that are still due, in the order of their moments, without those that another tick holds."""
    due = Reminder.objects.due(timezone.now()).filter(pk__in=ids).order_by("next_fire_at", "pk")
    return list(due.select_for_update(skip_locked=True, no_key=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A due reminder, and those of its moments that have come."""

    reminder: Reminder
    backlog: Backlog


def handle(reminders: Sequence[Reminder], now: datetime) -> None:
    """Make the runs and records of all moments up to `now`, and set each reminder to its next moment."""
    load_for_freezing(reminders)
    dues = [due for reminder in reminders if (due := _look_at(reminder, now)) is not None]
    missed = record_skipped(_new([_missed(due) for due in dues if due.backlog.missed]))
    going = _runs_going(due.reminder.pk for due in dues)
    held = due_moments.held([due.reminder for due in dues if due.backlog.fires])
    fired = _new(
        [
            _fired(due, going.get(due.reminder.pk, []), held.get(due.reminder.pk, ""))
            for due in dues
            if due.backlog.fires
        ]
    )
    skipped = record_skipped([firing for firing in fired if firing.why_not])
    make_runs([firing for firing in fired if not firing.why_not])
    Reminder.objects.bulk_update(reminders, ["status", "next_fire_at"])
    notifications.moments_missed(missed)
    notifications.moments_skipped(skipped)
    if held:
        due_at = {firing.reminder_id: firing.due_at for firing in fired if firing.why_not}
        due_moments.passed(reminders, held, due_at)


def lateness_limit() -> timedelta:
    return timedelta(minutes=settings.LATENESS_LIMIT_MINUTES)


def _look_at(reminder: Reminder, now: datetime) -> Due | None:
    """Return what has come due. Sets when the reminder is due next, or switches off an invalid schedule."""
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
    tell(
        reminder.owner_id,
        Notification.Kind.FAILED,
        key=key,
        title="Reminder switched off",
        body=f"{reminder}: {why} Then schedule it again.",
        url=f"/reminders/{reminder.pk}/",
    )


def _missed(due: Due) -> Firing:
    """Return one record for all missed moments."""
    why = sentences.missed(due.backlog, due.reminder.zone, lateness_limit())
    return freeze(due.reminder, due_at=due.backlog.last_missed, why_not=why)


def _fired(due: Due, going: Sequence[Run], held: str) -> Firing:
    """Return the firing, or its record when runs in `going` are in the way, or nobody approved it.

    At most one run waits for another.
    """
    reminder, moment = due.reminder, due.backlog.fires
    if held:
        return freeze(reminder, due_at=moment, why_not=held)
    passing = reminder.on_paused == Reminder.OnPaused.RUN
    ahead = [run for run in going if not (passing and run.waits_for_a_person)]
    if not ahead:
        return freeze(reminder, due_at=moment)
    choice = reminder.on_paused if ahead[-1].waits_for_a_person else reminder.on_overlap
    if choice == Reminder.OnOverlap.QUEUE and len(ahead) == 1:
        return freeze(reminder, due_at=moment, behind=ahead[0].pk)
    return freeze(reminder, due_at=moment, why_not=sentences.overlapped(ahead))


def _runs_going(reminder_ids: Iterable[int]) -> dict[int, list[Run]]:
    """Return the runs of reminders that may still send, the oldest first.

    Second messages and follow-ups do not count.
    """
    rows = Run.objects.in_the_way().filter(reminder__in=list(reminder_ids), kind=Run.Kind.REMINDER)
    going: dict[int, list[Run]] = {}
    columns = ("pk", "reminder_id", "status", "canceled_at", "pause_reason", "opens_at")
    for run in rows.only(*columns).order_by("pk"):
        going.setdefault(run.reminder_id, []).append(run)
    return going


def _new(firings: Sequence[Firing]) -> list[Firing]:
    """Return the firings whose moment has no run yet: a clock that was set back lets a moment come again."""
    moments = Run.objects.filter(
        reminder__in=[firing.reminder_id for firing in firings],
        due_at__in=[firing.due_at for firing in firings],
    )
    run = set(moments.values_list("reminder_id", "due_at")) if firings else set()
    return [firing for firing in firings if (firing.reminder_id, firing.due_at) not in run]
