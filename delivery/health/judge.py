"""Slows down and pauses accounts whose messages come back too often, and lifts that again (SPEC L3).

1. Count what the ledger got since the last look.
2. Judge each account that sent or heard something within the last days.
3. Where the judgement changed: slow it down, pause it with the sentence that names the figure, or let it recover.
4. Lift pauses whose time is over. What happened before counts no more: it starts afresh, with the first 50 messages.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Account
from accounts.models.account import Channel
from activity.models import AccountDay
from delivery import lifecycle, live, notifications
from delivery.health import counts, record, words
from delivery.health.rules import DAYS, Health, Level, Tally, Thresholds, judged
from delivery.lifecycle.accounts import locked_account

log = structlog.get_logger(__name__)


def watch(*, now: datetime) -> None:
    """Count and judge, then lift what is over."""
    counts.count_ledger(now=now)
    for account in Account.objects.filter(health=Account.Health.PAUSED, health_until__lte=now):
        _end_pause(account)
    accounts = list(_watched(now))
    for account, health in judge(accounts, now=now):
        act(account, health, now=now)


def judge(accounts: Sequence[Account], *, now: datetime) -> list[tuple[Account, Health]]:
    """Return the health of accounts, in one query."""
    tallies = counts.tallies(accounts, now=now)
    return [(account, health_of(account, tallies.get(account.pk, Tally()))) for account in accounts]


def health_of(account: Account, tally: Tally) -> Health:
    return judged(tally, thresholds(account))


def thresholds(account: Account) -> Thresholds:
    lost = settings.HEALTH_LOST_EMAIL if account.channel == Channel.EMAIL else settings.HEALTH_LOST
    return Thresholds(lost=lost, complained=settings.HEALTH_COMPLAINED)


def act(account: Account, health: Health, *, now: datetime) -> None:
    """Do what a judgement asks for, unless it is done already."""
    slowed = account.health == Account.Health.SLOW
    if account.health == Account.Health.PAUSED:
        return
    if health.level is Level.PAUSE and account.status == Account.Status.ACTIVE:
        _pause(account, health, now)
    elif health.level in {Level.SLOW, Level.PAUSE} and not slowed:
        _slow_down(account, health)
    elif slowed and (health.level is Level.UNKNOWN or health.recovered):
        _recover(account, health)


@transaction.atomic
def _pause(account: Account, health: Health, now: datetime) -> None:
    account = locked_account(account, None)  # with its runs, in the order that every move has
    if account.status != Account.Status.ACTIVE:
        return  # a person paused it since it was read: the end of a pause for health must not start it
    reason = words.why(account, health)
    until = now + timedelta(hours=settings.HEALTH_PAUSE_HOURS)
    if record.pause(account, reason=reason, until=until):
        lifecycle.stop_account(account, status=Account.Status.PAUSED, reason=words.paused(reason))
        notifications.account_unhealthy(account, "was paused", reason)
        log.warning("health_paused", account=account.pk, share=health.worst.share, figure=health.worst.name)


@transaction.atomic
def _end_pause(account: Account) -> None:
    """Let an account continue whose pause is over; one that is stopped for another reason stays stopped."""
    account = locked_account(account, None)
    if record.lift(account, by=None) and account.status == Account.Status.PAUSED:
        lifecycle.start_account(account)


@transaction.atomic
def _slow_down(account: Account, health: Health) -> None:
    reason = words.why(account, health)
    if record.slow_down(account, reason=reason):
        notifications.account_unhealthy(account, "was slowed down", reason)
        live_later(account)
        log.warning("health_slowed", account=account.pk, share=health.worst.share, figure=health.worst.name)


@transaction.atomic
def _recover(account: Account, health: Health) -> None:
    if record.recover(account, why=f"{words.figure(health.worst)}."):
        live_later(account)
        log.info("health_recovered", account=account.pk)


def live_later(account: Account) -> None:
    transaction.on_commit(lambda: live.account_changed(account.pk, account.owner_id))


def _watched(now: datetime) -> QuerySet[Account]:
    since = (now - timedelta(days=DAYS)).date()
    lately = AccountDay.objects.filter(day__gte=since).values("account")
    found = Account.objects.filter(Q(pk__in=lately) | ~Q(health=""), archived_at=None)
    return found.defer("credentials", "webhook", "limiter_marks")
