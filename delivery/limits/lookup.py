"""Reads the limits of an account from its rows, its profile and the settings (SPEC P2, P11)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.conf import settings

from accounts import warm_up_plan
from accounts.ceilings import ceiling_of
from accounts.models import Account, Limit
from accounts.profiles import PROFILES, ProfileLimits
from activity.ledger import count_since
from delivery.limiter import Day
from delivery.limits import long_spans
from delivery.limits.effective import GROUPS, Effective, Values, effective
from delivery.pacing import LONG_SPANS, Limits, span_words
from delivery.window import window_end_at, window_start_at

FIELDS = tuple(name for group in GROUPS for name in group)


def effective_limits(account: Account, action: str) -> Limits:
    """Return the limits that apply for one action."""
    return explained_limits(account, action).limits


def explained_limits(account: Account, action: str) -> Effective:
    """Return the limits that apply for one action, with the source of each number."""
    return merged(account, action, Limit.objects.filter(account=account, action=action).first())


def limits_of(accounts: Iterable[Account]) -> Mapping[tuple[int, str], Limit]:
    """Return the own limits of many accounts by account and action, in one query."""
    rows = Limit.objects.filter(account__in=[account.pk for account in accounts])
    return {(limit.account_id, limit.action): limit for limit in rows}


def limits_for(which: Iterable[tuple[Account, str]]) -> dict[tuple[int, str], Limits]:
    """Return the limits that hold for many accounts and actions, by account and action, in one query."""
    asked = list(which)
    own = limits_of({account.pk: account for account, _ in asked}.values())
    return {
        (account.pk, action): merged(account, action, own.get((account.pk, action))).limits
        for account, action in asked
    }


def merged(account: Account, action: str, own: Limit | None, *, warmed_up: bool = False) -> Effective:
    """Return the limits of an account from its own row for the action; `warmed_up` leaves out the warm-up cap."""
    chosen = PROFILES[account.profile]
    profile = chosen.limits_for(action, as_before=account.as_before)
    plan = None if warmed_up else account.warm_up
    return effective(
        account=_values(own),
        profile=_values(profile),
        settings=_as_settings_say(profile),
        ceiling=ceiling_of(account.channel, account.transport),
        service={"per_24_hours": account.service_per_24_hours} if account.service_per_24_hours else {},
        shortest_gap=chosen.shortest_gap,
        warm_up_cap=None if plan is None else warm_up_plan.cap(plan, account.warmup_clean_days),
    )


def day_caps(account: Account, action: str, own: Limit | None) -> tuple[int, ...]:
    """Return the caps of today and the days that follow, the last for all after it; assumes a clean warm-up."""
    cap = merged(account, action, own, warmed_up=True).limits.per_day
    plan = account.warm_up
    if plan is None:
        return () if cap is None else (cap,)
    return tuple(min(warm, cap or warm) for warm in warm_up_plan.curve(plan, account.warmup_clean_days))


def why_never(account: Account, limits: Limits, parts: int) -> str:
    """Return a sentence if `parts` messages to one recipient could never leave, however long they wait; else ''."""
    caps = {"minute": limits.per_minute, "hour": limits.per_hour, "day": limits.per_day}
    caps |= {span_words(name): getattr(limits, name) for name in LONG_SPANS}
    for period, cap in caps.items():
        if cap and cap < parts:
            return (
                f"This message has {parts} parts, and {account} may send {cap} per {period}. "
                "Use fewer parts, or raise the limit."
            )
    return ""


def why_never_from(accounts: Sequence[Account], action: str, parts: int) -> str:
    """Return the sentence of `why_never` for the first account that has one; else ''."""
    rows = limits_of(accounts)
    sentences = (
        why_never(account, merged(account, action, rows.get((account.pk, action))).limits, parts)
        for account in accounts
    )
    return next(filter(None, sentences), "")


def _values(row: Limit | ProfileLimits | None) -> Values:
    return {name: getattr(row, name, None) for name in FIELDS}


def _as_settings_say(profile: ProfileLimits) -> Values:
    """Return the limits from the settings, for values that a profile leaves empty."""
    values: dict[str, float] = {"per_minute": settings.MAX_PER_MINUTE}
    if profile.fixed_delay:
        values |= {"gap_min": settings.FIXED_DELAY_SECONDS, "gap_max": settings.FIXED_DELAY_SECONDS}
    if profile.batches:
        values |= {"batch_size": settings.BATCH_SIZE, "batch_pause": settings.BATCH_PAUSE_SECONDS}
    if profile.slow:
        values |= {"per_hour": settings.OVERDUE_MAX_PER_HOUR, "per_day": settings.OVERDUE_MAX_PER_DAY}
        values |= {"gap_min": settings.OVERDUE_GAP_MIN_SECONDS, "gap_max": settings.OVERDUE_GAP_MAX_SECONDS}
    return values


def day_of(account: Account, now: datetime) -> Day:
    """Return the calendar day of the account's zone that holds `now`."""
    start, end = window_start_at(account.zone, 0, now), window_end_at(account.zone, 24, now)
    return Day(start_ms=int(start.timestamp() * 1000), end_ms=int(end.timestamp() * 1000))


def day_is_full(account: Account, action: str, *, parts: int, now: datetime) -> bool:
    """Decide whether `parts` more messages now would cross the account's daily cap, or that of a long span."""
    limits = effective_limits(account, action)
    cap, since = limits.per_day, window_start_at(account.zone, 0, now)
    full = cap is not None and count_since(account.pk, action, since=since) + parts > cap
    return full or long_spans.is_full(account, action, limits, parts=parts, now=now)
