"""Removes old rows of tables that have no use after a while, in slices in the order in which they were written.

Rows were written in the order of their ids, nearly. So the walk begins at the first id and ends at the first slice
that holds nothing old: no index on time is needed, and what is new is never read.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import Q
from django.utils import timezone
from redis.exceptions import RedisError

from accounts.imports import stages
from accounts.models import GroupSync, Import, ImportRow, TestMessage
from activity import ledger_months
from activity.models import AccountDay, Attempt, Inbound, Notification
from config.redis.client import client

SLICE = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """A table, the time by which its rows are old, and which of them stay although they are old."""

    model: type[models.Model]
    written: str
    stay: Q = field(default_factory=Q)

    def rows(self, before: datetime) -> models.QuerySet[Any]:
        """Return the rows that may go."""
        return self.model._default_manager.filter(**{f"{self.written}__lt": before}).exclude(self.stay)

    def remove(self, before: datetime) -> Iterator[int]:
        """Remove the rows that may go; yield after each slice how many it had."""
        last = 0
        while found := self._slice(last):
            last = found[-1][0]
            if all(written >= before for _, written in found):
                return
            old = [pk for pk, written in found if written < before]
            yield self.model._default_manager.filter(pk__in=old).exclude(self.stay).delete()[0]

    def _slice(self, after: int) -> list[tuple[int, datetime]]:
        rows = self.model._default_manager.filter(pk__gt=after).order_by("pk")
        return list(rows.values_list("pk", self.written)[:SLICE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts that are emptied while their rows stay. How far the walk has come is remembered in Redis.

    Where Redis has lost it, the walk begins at the first row again, and finds nothing to empty there.
    """

    model: type[models.Model]
    written: str
    filled: Q
    empty: Mapping[str, str]
    place: str

    def rows(self, before: datetime) -> models.QuerySet[Any]:
        """Return the rows whose texts may go."""
        return self.model._default_manager.filter(self.filled, **{f"{self.written}__lt": before})

    def remove(self, before: datetime) -> Iterator[int]:
        """Empty the texts that may go; yield after each slice how many it had."""
        last = self._place()
        while found := self._slice(last):
            new = [pk for pk, written in found if written >= before]
            ids = [pk for pk, written in found if written < before]
            yield self.model._default_manager.filter(self.filled, pk__in=ids).update(**self.empty)
            last = new[0] - 1 if new else found[-1][0]
            self._remember(last)
            if new:
                return

    def _slice(self, after: int) -> list[tuple[int, datetime]]:
        rows = self.model._default_manager.filter(pk__gt=after).order_by("pk")
        return list(rows.values_list("pk", self.written)[:SLICE])

    def _place(self) -> int:
        with suppress(RedisError):
            return int(client().get(self.place) or 0)
        return 0

    def _remember(self, last: int) -> None:
        with suppress(RedisError):
            client().set(self.place, last)


REPLY_TEXTS = Texts(
    model=Inbound,
    written="created_at",
    filled=Q(kind=Inbound.Kind.MESSAGE, handled_at__isnull=False) & ~Q(text="", subject=""),
    empty={"text": "", "subject": ""},
    place="paceline:pruned:reply-texts",
)
# The newest change of consent at a service decides over earlier ones, so all of them stay.
INBOUND = Old(model=Inbound, written="created_at", stay=Q(kind=Inbound.Kind.CONSENT))
NOTIFICATIONS = Old(model=Notification, written="created_at")
TESTS = Old(model=TestMessage, written="asked_at")
GROUP_READINGS = Old(model=GroupSync, written="started_at", stay=Q(finished_at__isnull=True))


def old_imports(before: datetime) -> models.QuerySet[Import]:
    """Return the imports that may go. Recipients that they saved stay."""
    return Import.objects.filter(created_at__lt=before).exclude(status__in=stages.WORKING)


def old_attempts(before: datetime) -> models.QuerySet[Attempt]:
    return Attempt.objects.filter(at__lt=before)


def remove_attempts(before: datetime) -> Iterator[int]:
    """Remove old rows of the ledger: whole months at once, the others by their time; yield how many each step had."""
    for month in ledger_months.before(before):
        number = ledger_months.count(month)
        if ledger_months.drop(month):
            yield number
    oldest = old_attempts(before).order_by("at", "pk")
    after = datetime.min.replace(tzinfo=UTC)
    while found := list(oldest.filter(at__gte=after).values_list("pk", "at")[:SLICE]):
        after = found[-1][1]
        ids = [pk for pk, _ in found]
        yield Attempt.objects.filter(at__range=(found[0][1], after), pk__in=ids).delete()[0]


def rows_of_imports(before: datetime) -> models.QuerySet[ImportRow]:
    return ImportRow.objects.filter(job__in=old_imports(before))


def remove_imports(before: datetime) -> Iterator[int]:
    """Remove old imports with their files and rows; yield after each slice how many rows it had."""
    for job in old_imports(before).order_by("pk").iterator():
        while rows := list(ImportRow.objects.filter(job=job).values_list("pk", flat=True)[:SLICE]):
            yield ImportRow.objects.filter(pk__in=rows).delete()[0]
        stages.discard(job)
        yield 1


def ended_sessions() -> models.QuerySet[Session]:
    """Return the logins that are over: nobody is logged in by them."""
    return Session.objects.filter(expire_date__lt=timezone.now())


def remove_sessions() -> Iterator[int]:
    """Remove the logins that are over; yield after each slice how many it had."""
    while keys := list(ended_sessions().values_list("pk", flat=True)[:SLICE]):
        yield Session.objects.filter(pk__in=keys).delete()[0]


def old_account_days(before: datetime) -> models.QuerySet[AccountDay]:
    """Return the counts of days that were over by then in every zone."""
    return AccountDay.objects.filter(day__lt=before.date() - timedelta(days=1))


def remove_account_days(before: datetime) -> Iterator[int]:
    """Remove the counts of old days slice by slice; yield how many went. Nothing reads them after a month."""
    while True:
        slice_ = list(old_account_days(before).order_by("pk").values_list("pk", flat=True)[:SLICE])
        if not slice_:
            return
        yield AccountDay.objects.filter(pk__in=slice_).delete()[0]
