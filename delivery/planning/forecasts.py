"""Forecasts runs: those that are under way, and those that a firing would make."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings

from accounts.models import Account
from delivery import conf
from delivery.engine.newness import newness
from delivery.forecast import estimate_under, simulate_each, together
from delivery.lifecycle import window_of
from delivery.limits.lookup import why_never
from delivery.models import Run, RunAccount
from delivery.pacing import pace_of
from delivery.planning import people_ahead, planned_jobs, strangers
from delivery.planning.people_ahead import Budgets
from delivery.planning.planned_jobs import Arrival, Whose
from delivery.planning.simulation import LONGEST
from delivery.planning.upcoming import Scheduled, joined
from delivery.planning.values import Job, NewChats, Sender, Timeline, Who, rank_of
from delivery.planning.words import Expected, Forecast, told
from delivery.planning.workload import errors_of, left_of, senders
from delivery.states import RunStatus
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
    """Return the forecast of the run, with all that delays its accounts at the moment."""
    timelines, ready, shy = _look_ahead(plan, now)
    timeline = together(timelines, now=now)
    forecast = told(_expected(plan, ready, timeline, now), now=now)
    sentences = [strangers.told(forecast, each, now=now) for each in shy]
    if not any(sentences):
        return forecast
    return replace(
        forecast,
        fits=forecast.fits and max(each.last for each in shy if each.last) < forecast.closes_at,
        sentence=" ".join(filter(None, sentences)),
        suggestion="Add another account, or choose fewer people who have not written to this one.",
    )


def _look_ahead(plan: Plan, now: datetime) -> tuple[list[Timeline | None], list[Sender], list[strangers.Shy]]:
    """Return the timelines of the accounts, with the scheduled runs that will be fired before their end.

    The accounts and what is known about their new people come with them.
    """
    budgets = Budgets(people_ahead.new_chats_of(plan.accounts, now=now), now=now)
    whole = _alone(plan, budgets.chats, now)
    met = _strangers(plan, whole, budgets.chats, now)
    alone, known = _divided(plan, whole, met, budgets.chats, now), 0
    ready = _applied(plan, alone, budgets)
    timelines = _simulated(ready, now)
    for _ in range(LOOKS):
        upcoming = plan.scheduled(together(timelines, now=now).finishes_at or now + LONGEST)
        if len(upcoming) <= known:
            break
        known = len(upcoming)
        both = [
            joined(sender, account.pk, upcoming, now=now)
            for account, sender in zip(plan.accounts, alone, strict=True)
        ]
        ready = _applied(plan, both, budgets)
        timelines = _simulated(ready, now)
    return timelines, ready, _shy(plan, ready, timelines, met)


def _alone(plan: Plan, chats: Mapping[int, NewChats], now: datetime) -> list[Sender]:
    """Return the accounts with their open runs, and with this run as if all its recipients were known."""
    ids = [account.pk for account in plan.accounts]
    jobs = planned_jobs.of_others(ids, counts_chats=_with_quota(chats), now=now, but=plan.run)
    for pk, count in plan.targets.items():
        jobs[pk].append(_job(plan, count))
    return senders(plan.accounts, jobs, now=now)


def _divided(
    plan: Plan,
    whole: Sequence[Sender],
    met: Mapping[int, strangers.Strangers],
    chats: Mapping[int, NewChats],
    now: datetime,
) -> list[Sender]:
    """Return the accounts with this run as a job for each kind of recipient."""
    arrivals = _own_arrivals(plan, met, chats, now)
    found = []
    for account, sender in zip(plan.accounts, whole, strict=True):
        others = [job for job in sender.jobs if not job.own]
        own = [job for job in sender.jobs if job.own]
        mine = [each for job in own for each in planned_jobs.divided(job, arrivals.get(account.pk, ()))]
        found.append(replace(sender, jobs=[*others, *mine]))
    return found


def _applied(plan: Plan, ready: Sequence[Sender], budgets: Budgets) -> list[Sender]:
    return [budgets.applied(sender, account) for account, sender in zip(plan.accounts, ready, strict=True)]


def _with_quota(chats: Mapping[int, NewChats]) -> list[int]:
    return [pk for pk, each in chats.items() if each.left is not None]


def _strangers(
    plan: Plan, ready: Sequence[Sender], chats: Mapping[int, NewChats], now: datetime
) -> dict[int, strangers.Strangers]:
    """Count the new people of each account that has limits of them, or whose service has some of new chats."""
    found: dict[int, strangers.Strangers] = {}
    for account, sender in zip(plan.accounts, ready, strict=True):
        if plan.new is None or not plan.targets.get(account.pk):
            continue
        who = newness(account, pace_of(sender.allowances[plan.action].limits), now=now)
        if not who.subscribers and (who.counts_people or account.pk in chats):
            found[account.pk] = plan.new(account, who, account.pk in chats)
    return found


def _own_arrivals(
    plan: Plan, met: Mapping[int, strangers.Strangers], chats: Mapping[int, NewChats], now: datetime
) -> dict[int, list[Arrival]]:
    """Return which targets of the run itself are new people, and which have times of their own.

    A paused run is forecast as if it were resumed: then what moved off a full day may leave at once.
    """
    found: dict[int, list[Arrival]] = {}
    if plan.run is not None and plan.planned:
        whose = [
            Whose(
                account_id=pk,
                run_id=plan.run.pk,
                counts_chats=pk in met and pk in chats,
            )
            for pk in plan.targets
        ]
        keeps = plan.drip is not None or plan.run.status != RunStatus.PAUSED
        found = {
            pk: [each for each in arrivals if each.who is not Who.KNOWN or keeps]
            for (pk, _), arrivals in planned_jobs.arrivals_of(whose, now=now).items()
        }
    return {pk: _with_strangers(found.get(pk, []), met.get(pk), most) for pk, most in plan.targets.items()}


def _with_strangers(arrivals: list[Arrival], met: strangers.Strangers | None, targets: int) -> list[Arrival]:
    """Add the new people of whom the plan does not know: all of a run that is not made, some of one that is."""
    if met is None:
        return arrivals
    known = Counter[Who]()
    for each in arrivals:
        known[each.who] += each.targets
    missing = {
        Who.NEW_CHAT: met.chats - known[Who.NEW_CHAT],
        Who.NEW: met.new - met.chats - known[Who.NEW],
    }
    free = targets - sum(each.targets for each in arrivals if each.at or each.who is not Who.KNOWN)
    for who, count in missing.items():
        if (more := min(count, free)) > 0:
            arrivals = [Arrival(who=who, at=None, targets=more), *arrivals]
            free -= more
    return arrivals


def _shy(
    plan: Plan,
    ready: Sequence[Sender],
    timelines: Sequence[Timeline | None],
    met: Mapping[int, strangers.Strangers],
) -> list[strangers.Shy]:
    return [
        strangers.Shy(
            account=account,
            strangers=met[account.pk],
            limits=sender.allowances[plan.action].limits,
            timeline=timeline,
            chats_left=sender.new_chats.left,
        )
        for account, sender, timeline in zip(plan.accounts, ready, timelines, strict=True)
        if timeline is not None and account.pk in met and met[account.pk].new
    ]


def _simulated(ready: Sequence[Sender], now: datetime) -> list[Timeline | None]:
    return simulate_each(ready, now=now, minute=settings.MINUTE_SECONDS, delay=conf.delay)


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
    accounts = list(
        Account.objects.filter(run_accounts__run=run)
        .select_related("own_limits")
        .defer("credentials")
        .order_by("pk")
    )
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
    finish = together(_simulated(roomier, now), now=now).finishes_at
    zone = ZoneInfo(plan.window.zone)
    if finish is None or finish.astimezone(zone).date() != timeline.starts_at.astimezone(zone).date():
        return None
    return finish.astimezone(zone).hour + 1
