"""Removes what is older than its kind is kept, slice by slice, and counts beforehand what would go."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
AUDIT = "entries of the audit log"  # kept for AUDIT_KEEP_DAYS, whatever the other settings are
LOGINS = "ended logins"  # removed at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of data: what to call it, how to remove what is older than a time, and how to count it."""

    name: str
    remove: Callable[[datetime], Iterator[int]]
    count: Callable[[datetime], int]


def _count_targets(before: datetime) -> int:
    return RunTarget.objects.filter(run__in=runs.runs_over(before, known=[], most=1_000_000)).count()


KINDS: Mapping[str, Kind] = {
    # Before the targets that they name.
    "attempts": Kind(
        name="ledger rows",
        remove=rows.remove_attempts,
        count=lambda before: rows.old_attempts(before).count(),
    ),
    "targets": Kind(name="targets of runs", remove=runs.remove_details, count=_count_targets),
    "replies": Kind(
        name="replies and receipts",
        remove=rows.INBOUND.remove,
        count=lambda before: rows.INBOUND.rows(before).count(),
    ),
    "reply-texts": Kind(
        name="texts of replies",
        remove=rows.REPLY_TEXTS.remove,
        count=lambda before: rows.REPLY_TEXTS.rows(before).count(),
    ),
    "notifications": Kind(
        name="notifications",
        remove=rows.NOTIFICATIONS.remove,
        count=lambda before: rows.NOTIFICATIONS.rows(before).count(),
    ),
    "imports": Kind(
        name="imports and their rows",
        remove=rows.remove_imports,
        count=lambda before: rows.old_imports(before).count() + rows.rows_of_imports(before).count(),
    ),
    "account-days": Kind(
        name="days of accounts",
        remove=rows.remove_account_days,
        count=lambda before: rows.old_account_days(before).count(),
    ),
    "tests": Kind(
        name="tests", remove=rows.TESTS.remove, count=lambda before: rows.TESTS.rows(before).count()
    ),
    "group-readings": Kind(
        name="group readings",
        remove=rows.GROUP_READINGS.remove,
        count=lambda before: rows.GROUP_READINGS.rows(before).count(),
    ),
}
# Their rows go with the replies. KEEP_DAYS alone empties none before.
ASKED_FOR_ALONE = frozenset({"reply-texts"})
Borders = Mapping[str, datetime]


def border(days: int) -> datetime:
    """Return the time before which everything is old."""
    return timezone.now() - timedelta(days=days)


def borders_of_settings() -> dict[str, datetime]:
    """Return before when each kind is old, by KEEP_DAYS and KEEP_DAYS_OF; without the kinds that are kept for ever."""
    usual = dict.fromkeys(KINDS.keys() - ASKED_FOR_ALONE, settings.KEEP_DAYS)
    chosen = usual | {kind: days for kind, days in settings.KEEP_DAYS_OF.items() if kind in KINDS}
    return {kind: border(days) for kind, days in chosen.items() if days}


def prune(before: datetime | Borders, *, seconds: float | None = None) -> Counter[str]:
    """Remove what is older than `before` and not needed any more; return how many rows went, by kind.

    It stops after `seconds`, between two slices. What is left goes in the next pass.
    """
    removed, ends = Counter[str](), time.monotonic() + (float("inf") if seconds is None else seconds)
    for name, slices in _steps(_borders(before)):
        for number in slices:
            removed[name] += number
            if time.monotonic() > ends:
                return removed
    return removed


def would_remove(before: datetime | Borders) -> Mapping[str, int]:
    """Count what `prune` would remove now, by kind."""
    borders = _borders(before)
    counted = {kind.name: kind.count(borders[key]) for key, kind in KINDS.items() if key in borders}
    return counted | {LOGINS: rows.ended_sessions().count(), AUDIT: retention.count_old()}


def prune_by_settings() -> None:
    """Prune for a minute at most what the settings do not keep. Only one pass in each process."""
    borders = borders_of_settings()
    if not borders and not settings.AUDIT_KEEP_DAYS:
        return
    with one_in_slices("prune") as free:
        if not free:
            return
        removed = Counter({AUDIT: sum(retention.remove_old())})
        if borders:
            removed += prune(borders, seconds=PASS_SECONDS)
        for name, number in removed.items():
            counters.tell("pruned_rows", reason=name, number=number)


def _borders(before: datetime | Borders) -> Borders:
    """Return the border of each kind; one time holds for all that KEEP_DAYS removes."""
    if isinstance(before, datetime):
        return dict.fromkeys(KINDS.keys() - ASKED_FOR_ALONE, before)
    return before


def _steps(borders: Borders) -> Iterator[tuple[str, Iterator[int]]]:
    for key, kind in KINDS.items():
        if key in borders:
            yield kind.name, kind.remove(borders[key])
    yield LOGINS, rows.remove_sessions()
    yield AUDIT, retention.remove_old()
