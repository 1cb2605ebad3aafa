"""Foresees runs: those that are under way, and those that firing would make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count

from accounts.models import Account
from delivery.forecast import estimate, simulate, thinned
from delivery.lifecycle import window_of
from delivery.limits import why_never
from delivery.models import Run, RunTarget
from delivery.planning.course import Course, Job, Point, Sender
from delivery.planning.outlook import Expected, Forecast, told
from delivery.planning.standing import rank_of, senders, shares_of
from delivery.states import TargetStatus
from delivery.window import Missed, Window, last_close, on_fire, opens_at

MOST_COUNTED = 20_000  # targets of a run that are counted account by account; of more, each has an even share


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run to foresee: the targets of each of its accounts, and what it shares with none of them."""

    accounts: Sequence[Account]
    targets: Mapping[int, int]
    parts: int
    action: str
    window: Window
    fires_at: datetime
    priority: int
    resumes_by_itself: bool
    drip: tuple[float, float] | None = None  # the shortest and longest seconds between two targets
    run: Run | None = None  # the run itself, once there is one


def foresee(plan: Plan, *, now: datetime) -> Forecast:
    """How the run will go, with everything that holds its accounts back at the moment. A drip goes as planned."""
    own = {pk: _job(plan, count) for pk, count in plan.targets.items()}
    shares = shares_of(plan.accounts, now=now, but=plan.run)
    rank = rank_of(plan.priority, plan.fires_at)
    ready = senders(plan.accounts, own, rank=rank, shares=shares, now=now)
    course = (
        _planned_course(plan.run, now)
        if plan.run is not None and plan.run.drip
        else simulate(ready, now=now, minute=settings.MINUTE_SECONDS)
    )
    opening = opens_at(plan.window, plan.fires_at)
    expected = Expected(
        targets=sum(plan.targets.values()),
        parts=plan.parts,
        minutes=_minutes(plan, ready),
        window=plan.window,
        fires_at=plan.fires_at,
        closes_at=last_close(plan.window, opening),
        missed=plan.run is None and isinstance(on_fire(plan.window, plan.fires_at), Missed),
        drip=plan.drip is not None,
        resumes_by_itself=plan.resumes_by_itself,
        never=_never(plan, ready),
        fitting_end=_fitting_end(plan, ready, course, now),
        course=course,
    )
    return told(expected, now=now)


def forecast(run: Run, *, now: datetime) -> Forecast:
    """How a run goes on from here; one that is paused, if it is resumed now."""
    accounts = list(Account.objects.filter(run_accounts__run=run).defer("credentials").order_by("pk"))
    plan = Plan(
        accounts=accounts,
        targets=_left(run, accounts),
        parts=max(1, len(run.parts)),
        action=run.action,
        window=window_of(run),
        fires_at=max(now, run.opens_at or now),
        priority=run.priority,
        resumes_by_itself=run.resumes_by_itself,
        drip=run.drip,
        run=run,
    )
    return foresee(plan, now=now)


def _left(run: Run, accounts: Sequence[Account]) -> dict[int, int]:
    """What each account still has to send."""
    left = run.pending + run.sending
    if len(accounts) == 1:
        return {accounts[0].pk: left}
    if left > MOST_COUNTED:
        return {account.pk: ceil(left / len(accounts)) for account in accounts}
    open_ = RunTarget.objects.filter(run=run, status__in=[TargetStatus.PENDING, TargetStatus.SENDING])
    return dict(open_.values_list("account").annotate(Count("pk")).order_by())


def _planned_course(run: Run, now: datetime) -> Course:
    """The course of a drip is its plan; what is overdue is expected now."""
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING).order_by("not_before")
    times = [max(now, at) for at in pending.values_list("not_before", flat=True)]
    if not times:
        return Course(starts_at=now, finishes_at=now)
    points = [Point(at=at, done=number) for number, at in enumerate(times, start=1)]
    return Course(starts_at=times[0], finishes_at=times[-1], curve=thinned(points))


def _job(plan: Plan, count: int) -> Job:
    return Job(
        targets=count,
        parts=plan.parts,
        action=plan.action,
        window=plan.window,
        ready_at=plan.fires_at,
        spacing=plan.drip or (0.0, 0.0),
        own=True,
    )


def _minutes(plan: Plan, ready: Sequence[Sender]) -> int:
    """The rule of thumb, for the account that takes the longest."""
    rates = {
        account.pk: sender.allowances[plan.action].limits.per_minute
        for account, sender in zip(plan.accounts, ready, strict=True)
        if plan.action in sender.allowances
    }
    return max(
        (estimate(count, parts=plan.parts, per_minute=rates[pk] or 1) for pk, count in plan.targets.items()),
        default=0,
    )


def _never(plan: Plan, ready: Sequence[Sender]) -> str:
    if not plan.accounts:
        return "It has no account to send from. Choose one first."
    for account, sender in zip(plan.accounts, ready, strict=True):
        if plan.targets.get(account.pk) and (
            never := why_never(account, sender.allowances[plan.action].limits, plan.parts)
        ):
            return never
    return ""


def _fitting_end(plan: Plan, ready: Sequence[Sender], course: Course, now: datetime) -> int | None:
    """The end hour with which the run would be finished on the day that it starts, where a later one helps."""
    if course.starts_at is None or plan.window.end_hour == 24:
        return None
    wider = replace(plan.window, end_hour=24)
    roomier = [
        replace(sender, jobs=[replace(job, window=wider) if job.own else job for job in sender.jobs])
        for sender in ready
    ]
    finish = simulate(roomier, now=now, minute=settings.MINUTE_SECONDS).finishes_at
    zone = ZoneInfo(plan.window.zone)
    if finish is None or finish.astimezone(zone).date() != course.starts_at.astimezone(zone).date():
        return None
    return finish.astimezone(zone).hour + 1
