"""The two ways in which rows of the audit log go: by age, and what was typed about an erased recipient."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from audit.models import Entry, PersonalValues

SLICE = 5_000


@contextmanager
def _way(name: str) -> Iterator[None]:
    """Tell the trigger of the tables, for one transaction, by which way rows are removed."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('paceline.audit_way', %s, true)", [name])
        yield
        with connection.cursor() as cursor:  # the transaction may be a part of a larger one
            cursor.execute("SELECT set_config('paceline.audit_way', '', true)")


def old() -> datetime | None:
    """Return before when entries are old, or None where all of them are kept."""
    days = settings.AUDIT_KEEP_DAYS
    return timezone.now() - timedelta(days=days) if days else None


def remove_old() -> Iterator[int]:
    """Remove the entries that are older than AUDIT_KEEP_DAYS; yield after each slice how many it had."""
    before = old()
    while before is not None:
        found = list(Entry.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)[:SLICE])
        if not found:
            return
        with _way("retention"):
            _delete(PersonalValues, "entry_id", found)
            _delete(Entry, "id", found)
        yield len(found)


def count_old() -> int:
    before = old()
    return Entry.objects.filter(at__lt=before).count() if before else 0


def forget_recipient(recipient_id: int) -> int:
    """Remove what was typed about a recipient in all changes; the entries stay. Return how many lost something."""
    with _way("erasure"):
        found = list(PersonalValues.objects.filter(recipient_id=recipient_id).values_list("pk", flat=True))
        _delete(PersonalValues, "id", found)
    return len(found)


def _delete(model: type[Entry] | type[PersonalValues], column: str, ids: list[int]) -> None:
    """Delete rows by one plain statement: Django's own collects what refers to them first."""
    rows = model._base_manager.filter(**{f"{column}__in": ids})
    rows._raw_delete(rows.db)
