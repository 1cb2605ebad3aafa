"""Removes everything that is older than a number of days, slice by slice, and counts beforehand what would go."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.utils import timezone

from activity import counters
from activity.pruning import rows, runs
from audit import retention
from config.long_tasks import one_in_slices
from delivery.models import RunTarget

log = structlog.get_logger(__name__)

# Limits over rolling weeks and months count from the ledger, and services report again what was not taken for days.
FEWEST_DAYS = 35
PASS_SECONDS = 60  # of one task: the next pass goes on

Step = Callable[[datetime], Iterator[int]]
STEPS: Mapping[str, Step] = {
    "ledger rows": rows.remove_attempts,  # before the targets that they name
    "targets of runs": runs.remove_details,
    "replies and receipts": rows.INBOUND.remove,
    "notifications": rows.NOTIFICATIONS.remove,
    "imports and their rows": rows.remove_imports,
    "days of accounts": rows.remove_account_days,
    "tests": rows.TESTS.remove,
    "group readings": rows.GROUP_READINGS.remove,
    "ended logins": lambda _: rows.remove_sessions(),
}
AUDIT = "entries of the audit log"  # kept for AUDIT_KEEP_DAYS, whatever KEEP_DAYS is


def border(days: int) -> datetime:
    """Return the time before which everything is old."""
    return timezone.now() - timedelta(days=days)


def prune(before: datetime, *, seconds: float | None = None) -> Counter[str]:
    """Remove what is older than `before` and not needed any more; return how many rows went, by kind.

    It stops after `seconds`, between two slices. What is left goes in the next pass.
    """
    removed, ends = Counter[str](), time.monotonic() + (float("inf") if seconds is None else seconds)
    for name, step in (*STEPS.items(), (AUDIT, lambda _: retention.remove_old())):
        for number in step(before):
            removed[name] += number
            if time.monotonic() > ends:
                return removed
    return removed


def would_remove(before: datetime) -> Mapping[str, int]:
    """Count what `prune` would remove now, by kind."""
    over = runs.runs_over(before, known=[], most=1_000_000)
    return {
        "ledger rows": rows.old_attempts(before).count(),
        "targets of runs": RunTarget.objects.filter(run__in=over).count(),
        "replies and receipts": rows.INBOUND.rows(before).count(),
        "notifications": rows.NOTIFICATIONS.rows(before).count(),
        "imports and their rows": rows.old_imports(before).count() + rows.rows_of_imports(before).count(),
        "days of accounts": rows.old_account_days(before).count(),
        "tests": rows.TESTS.rows(before).count(),
        "group readings": rows.GROUP_READINGS.rows(before).count(),
        "ended logins": rows.ended_sessions().count(),
        AUDIT: retention.count_old(),
    }


def prune_by_settings() -> None:
    """Prune for a minute at most, if `KEEP_DAYS` says how long details are kept. Only one pass in each process."""
    if not settings.KEEP_DAYS and not settings.AUDIT_KEEP_DAYS:
        return
    with one_in_slices("prune") as free:
        if not free:
            return
        removed = Counter({AUDIT: sum(retention.remove_old())})
        if settings.KEEP_DAYS:
            removed += prune(border(settings.KEEP_DAYS), seconds=PASS_SECONDS)
        for name, number in removed.items():
            counters.tell("pruned_rows", reason=name, number=number)
