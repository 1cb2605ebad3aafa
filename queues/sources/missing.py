"""Withdraws the items of rows that were deleted, and of no others.

A row counts as deleted when two whole reads in succession did not find it. Where the table is empty all at once, or
more than half of it is gone, nothing is withdrawn until a person confirms it: that looks like a fault, a filter or the
wrong table, and an item that was withdrawn for nothing is a message that was not sent.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from queues import actions
from queues.models import Source, SourceRead, SourceRow
from queues.sources.tables import Known

CONFIRMED_AFTER = timedelta(seconds=30)
FEW = 20  # rows that may go at once from any table that is not empty
SLICE = 1_000


def settle(source: Source, read: SourceRead, known: Known | None, counts: Counter[str]) -> None:
    """Mark the rows that a whole read did not find, and withdraw those that the one before did not find either."""
    forget_without_id(source, read)
    gone = _not_found(source, read, known)
    total = SourceRow.objects.filter(source=source).exclude(own_id="").count()
    counts["missing"] = len(gone)
    now = timezone.now()
    twice = [row for row in gone if row.missing_since is not None]
    for start in range(0, len(gone), SLICE):
        part = [row.pk for row in gone[start : start + SLICE]]
        SourceRow.objects.filter(pk__in=part, missing_since=None).update(missing_since=now)
    held = len(gone) if _looks_wrong(len(gone), total) else 0
    Source.objects.filter(pk=source.pk).update(missing=held)
    source.missing = held
    if twice and not held:
        counts["withdrawn"] += withdraw(source, twice)


def to_confirm(source: Source) -> bool:
    """Decide whether rows wait for the next read to find them, or not to."""
    return (
        not source.missing and SourceRow.objects.filter(source=source, missing_since__isnull=False).exists()
    )


def withdraw(source: Source, rows: Sequence[SourceRow]) -> int:
    """Withdraw the items of these rows and forget the rows; return how many were withdrawn."""
    done = 0
    for start in range(0, len(rows), SLICE):
        part = rows[start : start + SLICE]
        own_ids = [row.own_id for row in part]
        done += actions.withdraw(
            source.queue, by=None, source=source.key, own_ids=own_ids, by_source=True
        ).done
        SourceRow.objects.filter(pk__in=[row.pk for row in part]).delete()
    return done


def missing_rows(source: Source) -> "QuerySet[SourceRow]":
    return SourceRow.objects.filter(source=source, missing_since__isnull=False)


def forget_without_id(source: Source, read: SourceRead) -> None:
    """Forget rows without an own id that this read did not find: they were named, corrected or deleted."""
    SourceRow.objects.filter(source=source, own_id="").exclude(seen_in=read.pk).delete()


def _not_found(source: Source, read: SourceRead, known: Known | None) -> list[SourceRow]:
    rows = SourceRow.objects.filter(source=source).exclude(own_id="").only("pk", "own_id", "missing_since")
    if known is None:
        return list(rows.exclude(seen_in=read.pk))
    here = {*known.once, *known.repeated}
    return [row for row in rows.iterator(5_000) if row.own_id not in here]


def _looks_wrong(gone: int, total: int) -> bool:
    return gone > 0 and (gone == total or (gone > FEW and gone * 2 > total))
