"""Forecasts runs: those that are under way, and those that a firing would make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Max, Min
from django.db.models.functions import TruncHour

from accounts.models import Account
from delivery import conf
from delivery.forecast import estimate_under, simulate, thinned
from delivery.lifecycle import window_of
from delivery.limits.lookup import why_never
from delivery.models import Run, RunAccount, RunTarget
from delivery.planning import new_people, strangers
from delivery.planning.simulation import LONGEST
from delivery.planning.upcoming import Scheduled, joined
from delivery.planning.values import Job, Point, Sender, Timeline, rank_of
from delivery.planning.words import Expected, Forecast, told
from delivery.planning.workload import errors_of, left_of, senders, shares_of
from delivery.states import TargetStatus
from delivery.window import Missed, Window, last_close, on_fire, opens_at

LOOKS = (
    3  # looks at the schedule: each may make the run longer, so that more scheduled runs come before its end
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run to forecast: the targets of each of its accounts, and the run's own settings."""

    accounts: Sequence[Account]
    targets: Mapping[int, int]
    parts: int
    action: str
    window: Window
    fires_at: datetime
    priority: int
    resumes_by_itself: bool
    drip: tuple[float, float] | None = None  # the shortest and longest seconds between two targets
    run: Run | None = None  # the run itself, if it exists already
    planned: bool = True  # its targets have the times that they will have, if it is a drip
    scheduled: Scheduled = lambda _: ()
    new: strangers.Count | None = None  # how many of an account's targets are new people


def foresee(plan: Plan, *, now: datetime) -> Forecast:
    """Return the forecast of the run, with all that delays its accounts at the moment. A drip follows its plan."""
    own = {pk: _job(plan, count) for pk, count in plan.targets.items()}
    shares = shares_of(plan.accounts, now=now, but=plan.run)
    ready = senders(plan.accounts, own, shares=shares, now=now)
    if plan.run is not None and plan.run.drip and plan.planned:
        timeline = _planned_timeline(plan.run, now)
    else:
        timeline, ready = _look_ahead(plan, ready, now)
    forecast = told(_expected(plan, ready, timeline, now), now=now)
    if plan.new is None or plan.drip is not None:
        return forecast
    slow = False  # whether an account has more new people than one day takes
    for account, sender in zip(plan.accounts, ready, strict=True):
        if not plan.targets.get(account.pk):
            continue
        limits = sender.allowances[plan.action].limits
        if new_people.limit_people(limits):
            whose = strangers.Whose(account=account, action=plan.action, limits=limits, run=plan.run)
            found = strangers.told(forecast, whose, plan.new, window=plan.window, now=now)
            if found is not forecast and slow:
                found = replace(found, sentence=f"{forecast.sentence} {found.sentence}")
            slow, forecast = slow or found is not forecast, found
    return forecast


def _look_ahead(plan: Plan, alone: list[Sender], now: datetime) -> tuple[Timeline, list[Sender]]:
    """Return the timeline, with the scheduled runs that will be fired before its end."""
    ready, timeline, known = alone, _simulated(alone, now), 0
    for _ in range(LOOKS):
        upcoming = plan.scheduled(timeline.finishes_at or now + LONGEST)
        if len(upcoming) <= known:
            break
        known = len(upcoming)
        ready = [
            joined(sender, account.pk, upcoming, now=now)
            for account, sender in zip(plan.accounts, alone, strict=True)
        ]
        timeline = _simulated(ready, now)
    return timeline, ready


def _simulated(ready: Sequence[Sender], now: datetime) -> Timeline:
    return simulate(ready, now=now, minute=settings.MINUTE_SECONDS, delay=conf.delay)


def _expected(plan: Plan, ready: Sequence[Sender], timeline: Timeline, now: datetime) -> Expected:
    return Expected(
        targets=sum(plan.targets.values()),
        parts=plan.parts,
        minutes=_minutes(plan, ready),
        window=plan.window,
        fires_at=plan.fires_at,
        closes_at=last_close(plan.window, opens_at(plan.window, plan.fires_at)),
        missed=plan.run is None and isinstance(on_fire(plan.window, plan.fires_at), Missed),
        drip=plan.drip is not None,
        resumes_by_itself=plan.resumes_by_itself,
        never=_never(plan, ready),
        errors=_errors(plan, ready),
        fitting_end=_fitting_end(plan, ready, timeline, now),
        timeline=timeline,
    )


def forecast(run: Run, *, now: datetime, scheduled: Scheduled = lambda _: ()) -> Forecast:
    """Return how a run continues from here; a paused run is forecast as if it were resumed now."""
    accounts = list(Account.objects.filter(run_accounts__run=run).defer("credentials").order_by("pk"))
    plan = Plan(
        accounts=accounts,
        targets={pk: left for pk, _, left in left_of(RunAccount.objects.filter(run=run))},
        parts=max(1, len(run.parts)),
        action=run.action,
        window=window_of(run),
        fires_at=max(now, run.opens_at or now),
        priority=run.priority,
        resumes_by_itself=run.resumes_by_itself,
        drip=run.drip,
        run=run,
        scheduled=scheduled,
        new=strangers.of_run(run),
    )
    return foresee(plan, now=now)


def _planned_timeline(run: Run, now: datetime) -> Timeline:
    """Return the timeline of a drip from its plan, hour by hour; overdue targets are expected now."""
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    hours = pending.annotate(hour=TruncHour("not_before")).values_list("hour").order_by("hour")
    points, done, starts_at = list[Point](), 0, now
    for _, first, last, count in hours.annotate(Min("not_before"), Max("not_before"), Count("pk")):
        starts_at, done = starts_at if points else max(now, first), done + count
        points.append(Point(at=max(now, last), done=done))
    finishes_at = points[-1].at if points else now
    return Timeline(starts_at=starts_at, finishes_at=finishes_at, curve=thinned(points))


def _job(plan: Plan, count: int) -> Job:
    return Job(
        targets=count,
        parts=plan.parts,
        action=plan.action,
        window=plan.window,
        ready_at=plan.fires_at,
        spacing=plan.drip or (0.0, 0.0),
        rank=rank_of(plan.priority, plan.fires_at),
        errors=errors_of(plan.run) if plan.run is not None else None,
        own=True,
    )


def _minutes(plan: Plan, ready: Sequence[Sender]) -> int:
    """Return the rule of thumb for the account that takes the longest."""
    return max(
        (
            estimate_under(sender.allowances[plan.action].limits, count, parts=plan.parts)
            for account, sender in zip(plan.accounts, ready, strict=True)
            if (count := plan.targets.get(account.pk, 0))
        ),
        default=0,
    )


def _errors(plan: Plan, ready: Sequence[Sender]) -> float:
    """Return the share that is expected to fail, where that is enough to pause the run; else 0."""
    rates = (
        sender.allowances[plan.action].errors
        for account, sender in zip(plan.accounts, ready, strict=True)
        if plan.targets.get(account.pk)
    )
    worst = max(rates, default=0.0)
    return worst if plan.run is None and worst > settings.ERROR_RATE_STOP else 0.0


def _never(plan: Plan, ready: Sequence[Sender]) -> str:
    if not plan.accounts:
        return "The reminder has no account to send from. Choose one first."
    for account, sender in zip(plan.accounts, ready, strict=True):
        if plan.targets.get(account.pk) and (
            never := why_never(account, sender.allowances[plan.action].limits, plan.parts)
        ):
            return never
    return ""


def _fitting_end(plan: Plan, ready: Sequence[Sender], timeline: Timeline, now: datetime) -> int | None:
    """Return the end hour with which the run would finish on its first day, where a later hour helps; else None."""
    if timeline.starts_at is None or plan.window.end_hour == 24:
        return None
    wider = replace(plan.window, end_hour=24)
    roomier = [
        replace(sender, jobs=[replace(job, window=wider) if job.own else job for job in sender.jobs])
        for sender in ready
    ]
    finish = _simulated(roomier, now).finishes_at
    zone = ZoneInfo(plan.window.zone)
    if finish is None or finish.astimezone(zone).date() != timeline.starts_at.astimezone(zone).date():
        return None
    return finish.astimezone(zone).hour + 1
