"""Advances warm-ups: each day of each account is judged once, from the ledger (SPEC P11).

1. Take the accounts that warm up and whose yesterday, in their own zone, is not counted yet.
2. Count what each sent on the days since the last that was counted, and what came back on them, whenever it was sent.
3. Add the days without trouble, and record yesterday as counted, only if no other process did meanwhile.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from django.db.models import Count, Q
from django.db.models.functions import TruncDate

from accounts import warm_up_plan
from accounts.models import Account
from accounts.models.account import Action
from accounts.profiles import PROFILES
from activity.ledger import last_send
from activity.models import AccountDay, Attempt
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
    """Count the account's days up to yesterday, unless they are counted already; return whether this call did so.

    An account that sent nothing for days starts lower again: half as far for every three of them (L5).
    """
    yesterday = now.astimezone(ZoneInfo(account.zone)).date() - timedelta(days=1)
    counted = account.warmup_counted_on
    if counted is not None and counted >= yesterday:
        return False
    # Days before the account was first seen to warm up say nothing about its plan.
    clean = 0 if counted is None else _clean_days(account, max(counted, yesterday - FURTHEST_BACK), yesterday)
    rests = 0 if counted is None or clean else _rests(account, counted, yesterday)
    before = account.warmup_clean_days
    days = warm_up_plan.after_rests(account.warm_up, before, rests) + clean
    moved = Account.objects.filter(pk=account.pk, warmup_counted_on=counted, warmup_clean_days=before).update(
        warmup_clean_days=days, warmup_counted_on=yesterday
    )
    if moved and days != before:
        log.info("warm_up_grew" if days > before else "warm_up_shrank", account=account.pk, clean_days=days)
        live.account_changed(account.pk, account.owner_id)
    return bool(moved)


def begin_again(account: Account, *, now: datetime) -> None:
    """Take a warm-up back to its start, because the service stopped the account; today does not count.

    This holds whatever the ledger says and even if the account is started again.
    """
    if account.warm_up is not None:
        today = now.astimezone(ZoneInfo(account.zone)).date()
        Account.objects.filter(pk=account.pk).update(warmup_counted_on=today, warmup_clean_days=0)


def _rests(account: Account, after: date, until: date) -> int:
    """Return how many rests of 72 hours without a message ended on the days after the first, up to the last."""
    times = [found[0] for action in Action.values if (found := last_send(account.pk, action))]
    sent_at = max(times, default=None)
    if sent_at is None:
        return 0
    ends = [window_start_at(account.zone, 24, _noon(account, day)) for day in (after, until)]
    before, now = (max(0, int((end - sent_at) / warm_up_plan.REST)) for end in ends)
    return now - before


def _noon(account: Account, day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(account.zone))


def _clean_days(account: Account, after: date, until: date) -> int:
    """Return how many days after the first, up to the last, were without trouble. A flagged account has trouble."""
    if account.status == Account.Status.FLAGGED:
        return 0
    zone = ZoneInfo(account.zone)
    start = window_start_at(account.zone, 24, _noon(account, after))
    end = window_start_at(account.zone, 24, _noon(account, until))
    days = Attempt.objects.filter(account=account, at__gte=start, at__lt=end).values(
        day=TruncDate("at", tzinfo=zone)
    )
    counts = days.annotate(
        sent=Count("pk", filter=Q(outcome=Outcome.SENT)),
        failed=Count("pk", filter=Q(outcome__in=FAILURES)),
        warned=Count("pk", filter=Q(outcome__in=WARNINGS)),
    ).order_by()
    late = _late(account, after, until)
    return sum(
        warm_up_plan.is_clean(
            sent=day["sent"],
            failed=day["failed"] + late.get(day["day"], (0, 0))[0],
            warned=day["warned"] + late.get(day["day"], (0, 0))[1],
        )
        for day in counts
    )


def _late(account: Account, after: date, until: date) -> dict[date, tuple[int, int]]:
    """Return how many messages came back, and how many were complained about, by the day on which that was told."""
    rows = AccountDay.objects.filter(account=account, day__gt=after, day__lte=until)
    return {row.day: (row.returned, row.complained) for row in rows}
