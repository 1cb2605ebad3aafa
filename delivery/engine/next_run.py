"""Chooses the run that an account serves next, or says until when it waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Func, IntegerField, Sum

from accounts.models import Account
from accounts.profiles import PROFILES
from activity.ledger import count_since, last_send
from delivery import conf
from delivery.engine import claims, clock_reading
from delivery.engine.claims import WHENEVER, NextRun, Planned
from delivery.engine.wakeups import Rest
from delivery.limits.lookup import effective_limits
from delivery.models import Run, RunTarget
from delivery.overdue import LastSend, Serve, Sleep, Work, has_room, overdue_before, turn
from delivery.pacing import Limits
from delivery.planning import new_people
from delivery.recovery import stop_sending
from delivery.states import TargetStatus, WaitReason
from delivery.window import window_end_at, window_start_at

CLOCKS_AGAIN = 5.0  # seconds until clocks that disagree are compared again

STOPPED = Rest(until=None, reason=WaitReason.SENDING_STOPPED)
NOTHING = Rest(until=None, reason=WaitReason.NOTHING_TO_SEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A run whose targets are due, which of them, and how many at most."""

    run: NextRun
    planned: Planned = WHENEVER
    most: int | None = None


def clocks_apart() -> Rest | None:
    """Return what to wait for if the clock of this process is off: it says neither what is due nor what is late."""
    apart = clock_reading.why_not()
    return Rest.after(CLOCKS_AGAIN, WaitReason.CLOCKS, apart) if apart else None


def next_turn(account: Account, *, now: datetime, busy: bool) -> Turn | Rest:
    """Return what to send now. `busy`: the account has messages that are not in the ledger yet."""
    found = _next_turn(account, now=now, busy=busy) if settings.SENDING else NOTHING
    # Asked only where nothing was found, which a stop causes: so an account that sends pays nothing for it.
    return STOPPED if found is NOTHING and stop_sending.stop_of(account.owner_id) else found


def _next_turn(account: Account, *, now: datetime, busy: bool) -> Turn | Rest:
    if PROFILES[account.profile].on_time_first:
        return _on_time_first(account, now=now, busy=busy)
    border = overdue_before(conf.drain(), now)
    found = claims.next_run(account.pk, now=now, sendable=conf.sendable(now), fresh=border)
    if found is not None and found.not_before <= now:
        return Turn(run=found, planned=Planned(since=border) if found.on_time_first else WHENEVER)
    late = claims.next_run(
        account.pk, now=now, sendable=conf.sendable(now), planned=Planned(before=border), slow=True
    )
    if late is not None:
        return _after_a_gap(account, late, found, now, busy=busy)
    return NOTHING if found is None else _later(account, found, now)


def _on_time_first(account: Account, *, now: datetime, busy: bool) -> Turn | Rest:
    """Choose by SPEC P9, as `overdue.py` has it: messages on time before overdue ones."""
    border = overdue_before(conf.drain(), now)
    sendable = conf.sendable(now)
    fresh = claims.next_run(account.pk, now=now, sendable=sendable, planned=Planned(since=border))
    if fresh is not None and fresh.not_before <= now:
        return Turn(run=fresh, planned=Planned(since=border))
    late = claims.next_run(account.pk, now=now, sendable=sendable, planned=Planned(before=border))
    if late is None:
        return _later(account, fresh, now) if fresh is not None else NOTHING
    return _after_a_gap(account, late, fresh, now, busy=busy)


def _after_a_gap(
    account: Account, late: NextRun, fresh: NextRun | None, now: datetime, *, busy: bool
) -> Turn | Rest:
    """Return an overdue message, once the ledger has all that the account sent; or until when it waits."""
    return Rest.after(1.0, WaitReason.GAP) if busy else _drained(account, late, fresh, now)


def _drained(account: Account, late: NextRun, fresh: NextRun | None, now: datetime) -> Turn | Rest:
    """Return an overdue message, or until when it waits."""
    limits, drain = effective_limits(account, late.action), conf.drain()
    work = Work(
        on_time=False,
        overdue=True,
        next_planned=fresh.not_before if fresh is not None else None,
        room=fresh is None or _has_room(account, late, limits, now),
    )
    gap = timedelta(seconds=limits.gap_max * account.slowness * settings.MINUTE_SECONDS / 60)
    match turn(drain, work, _last_send(account, late.action, now), now, gap=gap):
        case Sleep(until=until):
            planned = fresh is not None and until == fresh.not_before
            return _until(until, WaitReason.NOT_BEFORE if planned else WaitReason.GAP)
        case Serve():
            return Turn(run=late, planned=Planned(before=overdue_before(drain, now)), most=1)


def _has_room(account: Account, late: NextRun, limits: Limits, now: datetime) -> bool:
    """Decide whether the coming hour and today have room for one target of a run, besides what is planned."""
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
    """Count messages of the account's runs that come due until then: one for each part that a target still needs."""
    runs = Run.objects.going().filter(action=action, run_accounts__account=account, run_accounts__open=True)
    planned = RunTarget.objects.filter(
        account=account, run__in=runs, status=TargetStatus.PENDING, not_before__gt=now, not_before__lte=until
    )
    parts = Func(F("run__parts"), function="jsonb_array_length", output_field=IntegerField())
    return int(planned.aggregate(messages=Sum(parts - F("parts_done"), default=0))["messages"])


def _last_send(account: Account, action: str, now: datetime) -> LastSend | None:
    """Return the last message. A worker whose clock was ahead may have dated it later than now."""
    found = last_send(account.pk, action)
    return LastSend(at=min(found[0], now), attempt_id=found[1]) if found else None


def _later(account: Account, found: NextRun, now: datetime) -> Rest:
    """Return until when the account waits for its next target, and which limit of new people moved it there, if any."""
    rows = Account.objects.filter(pk=account.pk, first_contacts_until=found.not_before)
    if rows.exists():
        return _until(found.not_before, WaitReason.FIRST_CONTACTS)
    if not found.new_person:
        return _until(found.not_before, WaitReason.NOT_BEFORE)
    limits = effective_limits(account, found.action)
    used = new_people.allowance(account, found.action, limits, now=now)
    if limits.new_per_day and used.day_used >= limits.new_per_day:
        return _until(found.not_before, WaitReason.NEW_PER_DAY)
    week = limits.new_per_week is not None
    return _until(found.not_before, WaitReason.NEW_PER_WEEK if week else WaitReason.NOT_BEFORE)


def _until(moment: datetime | None, reason: WaitReason) -> Rest:
    return Rest(until=moment, reason=reason)
