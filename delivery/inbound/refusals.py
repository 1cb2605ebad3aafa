"""Counts the reports that a webhook refused, for the account's page.

Anyone who knows the address can send any number of requests: each process writes at most once in `EVERY` seconds for
an account, and adds up the refusals in between.
"""

import threading
import time
from collections import Counter

from django.db.models import F
from django.utils import timezone

from accounts.models import Account, RefusedReports

EVERY = 10.0  # seconds
LONGEST_REASON = 255


class Throttle:
    """Adds up events that come too often to be written one by one."""

    def __init__(self, every: float) -> None:
        self.every = every
        self._lock = threading.Lock()
        self._waiting: Counter[int] = Counter()
        self._written: dict[int, float] = {}

    def add(self, key: int, *, now: float) -> int:
        """Return how many events to write now; 0 while the last write is too recent."""
        with self._lock:
            self._waiting[key] += 1
            if now - self._written.get(key, -self.every) < self.every:
                return 0
            self._written[key] = now
            return self._waiting.pop(key)


_throttle = Throttle(EVERY)


def note(account: Account, reason: str) -> None:
    """Record that a report was refused, and why."""
    count = _throttle.add(account.pk, now=time.monotonic())
    if not count:
        return
    now = timezone.now()
    row = RefusedReports.objects.filter(account=account)
    told = {"last_at": now, "reason": reason[:LONGEST_REASON]}
    if not row.update(count=F("count") + count, **told):
        RefusedReports.objects.bulk_create(
            [RefusedReports(account=account, count=count, first_at=now, **told)], ignore_conflicts=True
        )


def forget(account: Account) -> None:
    """Clear the count, for example after a new connection."""
    RefusedReports.objects.filter(account=account).delete()
