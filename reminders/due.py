"""Fires what is due, each moment once, with every tick (SPEC S1).

A reminder whose `next_fire_at` has come is taken under its lock, dealt with and moved on to its next moment in one
transaction: two ticks share the work and never take the same one, a crash leaves it due, and an edit comes before
or after. Should a moment ever come back, the database refuses a second run for it.

1. Look whether anything is due, or any run waits behind another: one query, and mostly that is all.
2. Take a batch, skipping what another tick holds.
3. Decide for each: fire, fire late, record as missed, skip or queue behind a run that is still going.
4. Make all runs and records of the batch together, and move the reminders on.
5. If that fails, take the batch one by one: a reminder that cannot be dealt with stays due, holds nobody up, and is
   recorded as missed once it is too late for it.
"""

import time
from collections.abc import Collection, Iterator, Sequence

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from delivery import lifecycle
from delivery.models import Run
from reminders.deal import deal
from reminders.models import Reminder

log = structlog.get_logger(__name__)

BATCH = 100
MOST_WAITING = 500
SHIFT_SECONDS = 10  # then the next tick goes on: a long backlog is shared by a few, and not by ever more

ANYTHING = """
SELECT EXISTS (SELECT 1 FROM reminders_reminder WHERE status = 'scheduled' AND next_fire_at <= %(now)s),
       EXISTS (SELECT 1 FROM delivery_run WHERE status = 'queued' AND opens_at IS NULL)
"""


def tick() -> None:
    """All that is due now."""
    with connection.cursor() as cursor:
        cursor.execute(ANYTHING, {"now": timezone.now()})
        due, waiting = cursor.fetchone()
    if due:
        fire_due()
    if waiting:
        start_waiting()


def fire_due() -> None:
    """Deal with reminder after reminder until none is due, or this shift is over."""
    ends, stuck = time.monotonic() + SHIFT_SECONDS, set[int]()
    while time.monotonic() < ends:
        taken, failed = _deal_with_batch(stuck)
        stuck |= failed
        if taken < BATCH:
            break


def start_waiting() -> None:
    """Start the runs that waited for the last run of their reminder, where that has ended."""
    ahead = Run.objects.open().filter(
        reminder=OuterRef("reminder"), kind=Run.Kind.REMINDER, pk__lt=OuterRef("pk")
    )
    for run in Run.objects.behind().filter(~Exists(ahead)).order_by("pk")[:MOST_WAITING]:
        lifecycle.start_waiting(run)


def _deal_with_batch(stuck: Collection[int]) -> tuple[int, set[int]]:
    """How many were taken, and those that could not be dealt with."""
    taken: list[int] = []
    try:
        with transaction.atomic():
            reminders = _take(BATCH, without=stuck)
            taken = [reminder.pk for reminder in reminders]
            deal(reminders, timezone.now())
    except (InterfaceError, OperationalError):
        raise  # the database is away, or chose this one to give way: the next tick tries again
    except Exception:
        log.exception("firing_one_by_one", reminders=len(taken))
        return len(taken), set(_deal_one_by_one(taken))
    return len(taken), set()


def _deal_one_by_one(ids: Sequence[int]) -> Iterator[int]:
    """Those that cannot be dealt with even alone."""
    for reminder_id in ids:
        try:
            with transaction.atomic():
                deal(_take(1, only=reminder_id), timezone.now())
        except Exception:
            log.exception("firing_failed", reminder=reminder_id)
            yield reminder_id


def _take(most: int, *, without: Collection[int] = (), only: int | None = None) -> list[Reminder]:
    due = Reminder.objects.due(timezone.now())
    if without:
        due = due.exclude(pk__in=without)
    if only is not None:
        due = due.filter(pk=only)
    return list(due.order_by("next_fire_at", "pk").select_for_update(skip_locked=True, no_key=True)[:most])
