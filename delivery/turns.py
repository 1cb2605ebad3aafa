"""Which run an account serves next, or until when it rests; asked whenever it could send more."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Func, IntegerField, Sum

from accounts.models import Account
from accounts.profiles import PROFILES
from activity.ledger import count_since, last_send
from delivery import claims, knobs
from delivery.claims import WHENEVER, NextRun, Planned
from delivery.limits import effective_limits
from delivery.models import Run, RunTarget
from delivery.overdue import LastSend, Serve, Sleep, Work, has_room, overdue_before, turn
from delivery.pacing import Limits
from delivery.queues import Rest
from delivery.states import TargetStatus, WaitReason
from delivery.window import window_end_at, window_start_at

NOTHING = Rest(until=None, reason=WaitReason.NOTHING_TO_SEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A run whose targets are due, which of them, and how many at most."""

    run: NextRun
    planned: Planned = WHENEVER
    most: int | None = None


def next_turn(account: Account, *, now: datetime, busy: bool) -> Turn | Rest:
    """What to send now. `busy`: the account has messages that are not in the ledger yet."""
    if PROFILES[account.profile].on_time_first:
        return _on_time_first(account, now=now, busy=busy)
    found = claims.next_run(account.pk, now=now, sendable=knobs.sendable(now))
    if found is None:
        return NOTHING
    return Turn(run=found) if found.not_before <= now else _until(found.not_before, WaitReason.NOT_BEFORE)


def _on_time_first(account: Account, *, now: datetime, busy: bool) -> Turn | Rest:
    """SPEC P9, as `overdue.py` has it."""
    border = overdue_before(knobs.drain(), now)
    sendable = knobs.sendable(now)
    fresh = claims.next_run(account.pk, now=now, sendable=sendable, planned=Planned(since=border))
    if fresh is not None and fresh.not_before <= now:
        return Turn(run=fresh, planned=Planned(since=border))
    late = claims.next_run(account.pk, now=now, sendable=sendable, planned=Planned(before=border))
    if late is not None and busy:
        return Rest.after(1.0, WaitReason.GAP)
    if late is None:
        return _until(fresh.not_before, WaitReason.NOT_BEFORE) if fresh is not None else NOTHING
    return _drained(account, late, fresh, now)


def _drained(account: Account, late: NextRun, fresh: NextRun | None, now: datetime) -> Turn | Rest:
    """An overdue message, or until when it waits."""
    limits, drain = effective_limits(account, late.action), knobs.drain()
    work = Work(
        on_time=False,
        overdue=True,
        next_planned=fresh.not_before if fresh is not None else None,
        room=fresh is None or _has_room(account, late, limits, now),
    )
    gap = timedelta(seconds=limits.gap_max * account.slow_factor * settings.MINUTE_SECONDS / 60)
    match turn(drain, work, _last_send(account, late.action), now, gap=gap):
        case Sleep(until=until):
            planned = fresh is not None and until == fresh.not_before
            return _until(until, WaitReason.NOT_BEFORE if planned else WaitReason.GAP)
        case Serve():
            return Turn(run=late, planned=Planned(before=overdue_before(drain, now)), most=1)


def _has_room(account: Account, late: NextRun, limits: Limits, now: datetime) -> bool:
    """For one target of a run in the coming hour and today, besides what is planned."""
    hour = timedelta(seconds=60 * settings.MINUTE_SECONDS)
    midnight, end = window_start_at(account.zone, 0, now), window_end_at(account.zone, 24, now)
    parts = len(Run.objects.values_list("parts", flat=True).get(pk=late.run_id))
    return all(
        has_room(
            cap,
            sent=count_since(account.pk, late.action, since=since),
            planned=_planned(account, late.action, now, until),
            parts=parts,
        )
        for cap, since, until in ((limits.per_hour, now - hour, now + hour), (limits.per_day, midnight, end))
        if cap is not None
    )


def _planned(account: Account, action: str, now: datetime, until: datetime) -> int:
    """Messages of its runs that come due until then; a target has one for each part that is left of it."""
    runs = Run.objects.going().filter(action=action, run_accounts__account=account, run_accounts__open=True)
    planned = RunTarget.objects.filter(
        account=account, run__in=runs, status=TargetStatus.PENDING, not_before__gt=now, not_before__lte=until
    )
    parts = Func(F("run__parts"), function="jsonb_array_length", output_field=IntegerField())
    return int(planned.aggregate(messages=Sum(parts - F("parts_done"), default=0))["messages"])


def _last_send(account: Account, action: str) -> LastSend | None:
    found = last_send(account.pk, action)
    return LastSend(at=found[0], attempt_id=found[1]) if found else None


def _until(moment: datetime | None, reason: WaitReason) -> Rest:
    return Rest(until=moment, reason=reason)
