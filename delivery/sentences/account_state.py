"""Reads the facts for the sentences of accounts, in a few queries however many accounts there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Min, Q
from redis.exceptions import RedisError

from accounts.models import Account, Limit
from accounts.models.account import Channel
from config.redis.client import client
from delivery import pacing
from delivery.limits import lookup, work_hours
from delivery.models import RunAccount, RunTarget
from delivery.sentences.account_sentence import UNSERVED_AFTER, AccountNow, Why, tell
from delivery.states import AccountStatus, RunStatus, TargetStatus
from delivery.transports import kinds

SERVERS: Mapping[str, str] = {
    "email": "the mail server",
    "email_provider": "the mail provider",
    "matrix": "the Matrix server",
    "cloud_api": "Meta's server",
    "unipile": "Unipile",
    "wassenger": "Wassenger",
}

SERVICES: Mapping[str, str] = {
    Channel.WHATSAPP: "WhatsApp",
    Channel.EMAIL: "the mail server",
    Channel.LINKEDIN: "LinkedIn",
    Channel.MATRIX: "the Matrix server",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The numbers of an account's open runs that are running and that are paused."""

    running: int = 0
    paused: int = 0


def whys(accounts: Sequence[Account], *, now: datetime, zone: tzinfo | None = None) -> dict[int, Why]:
    """Return the sentence of each account by its id, with times in `zone`, else in the account's own."""
    found = states(accounts, now=now)
    return {
        account.pk: tell(found[account.pk], now=now, zone=zone or ZoneInfo(account.zone))
        for account in accounts
    }


def states(accounts: Sequence[Account], *, now: datetime) -> dict[int, AccountNow]:
    """Return the facts about each account by its id."""
    ids = [account.pk for account in accounts]
    runs, asked = _runs(ids), _asked(ids)
    own = lookup.limits_of(accounts) if accounts else {}
    found = {
        account.pk: _state(account, runs.get(account.pk, Runs()), asked.get(account.pk), now)
        for account in accounts
    }
    for account in accounts:
        if found[account.pk].running:
            held = _held(account, own)
            found[account.pk] = replace(found[account.pk], pace=_pace(held), limits=_caps(held))
    if any(_is_unserved(state, now) for state in found.values()) and not _redis_answers():
        return {pk: replace(state, redis_answers=False) for pk, state in found.items()}
    return found


def _state(account: Account, runs: Runs, asked_at: datetime | None, now: datetime) -> AccountNow:
    return AccountNow(
        status=AccountStatus(account.status),
        status_reason=account.status_reason,
        name=account.name,
        full_pace_at=work_hours.ramp_ends(account, now=now),
        archived=account.archived_at is not None,
        server=SERVERS.get(account.transport, "the gateway"),
        service=SERVICES.get(account.channel, "the service"),
        running=runs.running,
        paused=runs.paused,
        slow_factor=account.slow_factor,
        health_factor=account.slowness / account.slow_factor,
        health_until=account.health_until,
        waiting_for=account.waiting_for,
        waiting_until=account.waiting_until,
        waiting_detail=account.waiting_detail,
        trouble_kind=account.trouble_kind,
        trouble=account.trouble,
        trouble_since=max(filter(None, (account.trouble_since, account.trouble_kind_since)), default=None),
        next_try=account.held_until,
        asked_at=asked_at,
        wake_at=account.wake_at,
    )


def _runs(accounts: Sequence[int]) -> dict[int, Runs]:
    shares = RunAccount.objects.filter(account__in=accounts, open=True)
    rows = shares.values("account").annotate(
        running=Count("pk", filter=Q(run__status=RunStatus.RUNNING)),
        paused=Count("pk", filter=Q(run__status=RunStatus.PAUSED, run__canceled_at=None)),
    )
    return {row["account"]: Runs(running=row["running"], paused=row["paused"]) for row in rows}


def _asked(accounts: Sequence[int]) -> dict[int, datetime]:
    """Return when the oldest request without an answer left, by account: only its intent is stored."""
    under_way = RunTarget.objects.filter(
        account__in=accounts, status=TargetStatus.SENDING, begun_at__isnull=False
    )
    return dict(under_way.values("account").annotate(since=Min("begun_at")).values_list("account", "since"))


def _held(account: Account, own: Mapping[tuple[int, str], Limit]) -> pacing.Limits:
    """Return the limits of the account's first action, which nearly all of its messages have."""
    kind = kinds().get(account.transport)
    actions = kind.default_capabilities.actions if kind else frozenset()
    action = "email" if "email" in actions else "message"
    return lookup.merged(account, action, own.get((account.pk, action))).limits


def _pace(held: pacing.Limits) -> float:
    """Return the seconds between two messages, on average."""
    even = max((held.gap_min + held.gap_max) / 2, pacing.spread_ms(held, 1) / 1000)
    return even * settings.MINUTE_SECONDS / 60


def _caps(held: pacing.Limits) -> dict[str, int | None]:
    names = ("per_minute", "per_hour", "per_day", *pacing.LONG_SPANS, "new_per_day", "new_per_week")
    return {name: getattr(held, name) for name in names}


def _is_unserved(state: AccountNow, now: datetime) -> bool:
    return bool(state.running and state.wake_at is not None and now - state.wake_at > UNSERVED_AFTER)


def _redis_answers() -> bool:
    try:
        return bool(client().ping())
    except RedisError:
        return False
