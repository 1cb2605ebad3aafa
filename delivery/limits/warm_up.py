"""Advances warm-ups: each day of each account is judged once, from the ledger (SPEC P11).

1. Take the accounts that warm up and whose yesterday, in their own zone, is not counted yet.
2. Count what each sent on the days since the last that was counted.
3. Add the days without trouble, and record yesterday as counted, only if no other process did meanwhile.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from django.db.models import Count, F, Q
from django.db.models.functions import TruncDate

from accounts import warm_up_plan
from accounts.models import Account
from accounts.profiles import PROFILES
from activity.models import Attempt
from delivery import live
from delivery.window import window_start_at

log = structlog.get_logger(__name__)

Outcome = Attempt.Outcome
WARNINGS = (Outcome.RATE_LIMITED, Outcome.ACCOUNT_BLOCKED)
FAILURES = (Outcome.REJECTED, Outcome.UNKNOWN)
FURTHEST_BACK = timedelta(days=31)  # after a longer outage, earlier days do not count


def judge_days(*, now: datetime) -> int:
    """Count the days that are over by now; return how many accounts advanced."""
    return sum(judge(account, now) for account in _warming())


def _warming() -> Iterator[Account]:
    profiles = [profile.key for profile in PROFILES.values() if profile.warm_up]
    planned = Q(warmup_start__isnull=False) | Q(profile__in=profiles)
    return Account.objects.filter(planned, archived_at=None).defer("credentials").iterator()


def judge(account: Account, now: datetime) -> bool:
    """Count the account's days up to yesterday, unless they are counted already; return whether this call did so."""
    yesterday = now.astimezone(ZoneInfo(account.zone)).date() - timedelta(days=1)
    counted = account.warmup_counted_on
    if counted is not None and counted >= yesterday:
        return False
    # Days before the account was first seen to warm up say nothing about its plan.
    clean = 0 if counted is None else _clean_days(account, max(counted, yesterday - FURTHEST_BACK), yesterday)
    moved = Account.objects.filter(pk=account.pk, warmup_counted_on=counted).update(
        warmup_clean_days=F("warmup_clean_days") + clean, warmup_counted_on=yesterday
    )
    if moved and clean:
        log.info("warm_up_grew", account=account.pk, clean_days=account.warmup_clean_days + clean)
        live.account_changed(account.pk, account.owner_id)
    return bool(moved)


def spoil_today(account: Account, *, now: datetime) -> None:
    """Record that today does not count, because the service stopped the account.

    This holds whatever the ledger says and even if the account is started again.
    """
    if account.warm_up is not None:
        today = now.astimezone(ZoneInfo(account.zone)).date()
        Account.objects.filter(pk=account.pk).update(warmup_counted_on=today)


def _clean_days(account: Account, after: date, until: date) -> int:
    """Return how many days after the first, up to the last, were without trouble. A flagged account has trouble."""
    if account.status == Account.Status.FLAGGED:
        return 0
    zone = ZoneInfo(account.zone)
    start = window_start_at(account.zone, 24, datetime(after.year, after.month, after.day, 12, tzinfo=zone))
    end = window_start_at(account.zone, 24, datetime(until.year, until.month, until.day, 12, tzinfo=zone))
    days = Attempt.objects.filter(account=account, at__gte=start, at__lt=end).values(
        day=TruncDate("at", tzinfo=zone)
    )
    counts = days.annotate(
        sent=Count("pk", filter=Q(outcome=Outcome.SENT)),
        failed=Count("pk", filter=Q(outcome__in=FAILURES)),
        warned=Count("pk", filter=Q(outcome__in=WARNINGS)),
    ).order_by()
    return sum(
        warm_up_plan.is_clean(sent=day["sent"], failed=day["failed"], warned=day["warned"]) for day in counts
    )
