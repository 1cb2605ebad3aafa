"""Removes the details of runs that ended long ago: their targets, follow-ups and uploaded media.

A run keeps its row with all its counts, and its summary says that its details were removed. In this order:

1. Choose runs that ended before the border and that nothing needs any more: no message waits for a person's decision,
   no follow-up waits or may still come, and no second message of theirs is under way.
2. Under the run's lock, look once more, and write down that the details are removed. From then on no page offers
   "Retry failed", so that no target comes back to life between two slices.
3. Delete the targets in slices, each with the rows that refer to it. Each slice is a transaction of its own: after a
   crash the next pass finds the run again and goes on.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from delivery.models import MediaHandle, Run, RunTarget
from delivery.sentences import run_summary
from delivery.states import OPEN_RUN, SETTLED_RUN

MOST_RUNS = 200  # chosen at a time
SLICE = 5_000
ONE_MESSAGE, REMOVED = "Message to one recipient", "removed"

# The runs whose targets something still refers to: a follow-up that waits, or one that ended not long ago, since its
# next step looks for it; and a second message that is not over.
NEEDED = """
WITH followed AS (
    SELECT f.target_id, f.sent_as_id FROM reminders_followup f
    WHERE f.status IN ('queued', 'sending') OR f.ended_at > %(now)s - make_interval(secs => 3600 * (
        SELECT %(latest)s + COALESCE(max(after_hours), 0) FROM reminders_followupstep
    ))
)
SELECT t.run_id FROM followed f JOIN delivery_runtarget t ON t.id = f.target_id
UNION
SELECT t.run_id FROM followed f JOIN delivery_runtarget t ON t.id = f.sent_as_id
UNION
SELECT t.run_id FROM delivery_run second JOIN delivery_runtarget t ON t.id = second.first_target_id
WHERE second.status = ANY(%(open)s)
"""
# The first follow-up to a run may come until so long after its end (`reminders/follow_ups/entry.py`).
OVER = """
SELECT r.id FROM delivery_run r
WHERE r.details_left AND r.finished_at < %(before)s AND r.status = ANY(%(settled)s) AND r.unconfirmed = 0
  AND r.id <> ALL(%(needed)s::bigint[]) AND r.id <> ALL(%(known)s::bigint[])
  AND r.finished_at < %(now)s - make_interval(secs => 3600 * COALESCE(
      (SELECT %(latest)s + max(s.after_hours) FROM reminders_followupstep s WHERE s.reminder_id = r.reminder_id), 0
  ))
ORDER BY r.finished_at LIMIT %(most)s
"""
# What refers to targets goes first; the services' reports stay for as long as all reports do.
WITH_THEM = (
    "UPDATE activity_inbound SET target_id = NULL WHERE target_id = ANY(%s)",
    "UPDATE delivery_run SET first_target_id = NULL WHERE first_target_id = ANY(%s)",
    "UPDATE reminders_followup SET sent_as_id = NULL WHERE sent_as_id = ANY(%s)",
    "DELETE FROM reminders_followup WHERE target_id = ANY(%s)",
    # An item of a queue stays, so that its own id is not taken as new; what it said goes.
    "DELETE FROM delivery_targetcontent WHERE target_id = ANY(%s)",
    "DELETE FROM delivery_runtarget WHERE id = ANY(%s)",
)


def remove_details(before: datetime) -> Iterator[int]:
    """Remove the details of runs that ended before then; yield after each slice how many targets it had."""
    known = list[int]()
    while found := runs_over(before, known=known):
        known += found
        for run_id in found:
            if _marked(run_id):
                yield from _slices(run_id)


def runs_over(before: datetime, *, known: list[int], most: int = MOST_RUNS) -> list[int]:
    """Return the ids of runs whose details may go, the oldest first, without those that are `known`."""
    arguments: dict[str, Any] = {
        "now": timezone.now(),
        "before": before,
        "latest": settings.FOLLOW_UP_LATEST_HOURS,
        "open": sorted(OPEN_RUN),
        "settled": sorted(SETTLED_RUN),
        "known": known,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(NEEDED, arguments)
        needed = [row[0] for row in cursor.fetchall()]
        cursor.execute(OVER, arguments | {"needed": needed})
        return [row[0] for row in cursor.fetchall()]


@transaction.atomic
def _marked(run_id: int) -> bool:
    """Write down that the run's details are removed, unless a person has opened it again meanwhile."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.status not in SETTLED_RUN or run.unconfirmed:
        return False
    if run.details_removed_at is None:
        run.details_removed_at = timezone.now()
        run.summary = run_summary.details_removed(run)
        if run.kind == Run.Kind.MESSAGE:  # it was for one person, whose words go with the details
            run.name, run.subject, run.parts = ONE_MESSAGE, "", [{"kind": "text", "text": REMOVED}]
        run.save(update_fields=["details_removed_at", "summary", "name", "subject", "parts"])
    return True


def _slices(run_id: int) -> Iterator[int]:
    while ids := _first_targets(run_id):
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in WITH_THEM:
                cursor.execute(statement, [ids])
        yield len(ids)
    with transaction.atomic():
        MediaHandle.objects.filter(run=run_id).delete()
        Run.objects.filter(pk=run_id).update(details_left=False)
    yield 0


def _first_targets(run_id: int) -> list[int]:
    targets = RunTarget.objects.filter(run=run_id).order_by("status", "pk")
    return list(targets.values_list("pk", flat=True)[:SLICE])
