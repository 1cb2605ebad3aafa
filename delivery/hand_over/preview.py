"""Shows a hand-over before it is made: what would move, and both forecasts, to stay and to hand over (SPEC S8)."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from accounts.models import Account, Role, User
from accounts.roles import touchable
from delivery.hand_over import move, words
from delivery.hand_over.split import Split, Wish, count
from delivery.lifecycle import window_of
from delivery.models import Run, RunTarget
from delivery.planning import forecasts
from delivery.planning.forecasts import Plan, foresee
from delivery.planning.strangers import Strangers
from delivery.planning.words import Forecast
from delivery.states import TargetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a run goes on: the sentence, whether it finishes in its window, and the forecast behind it, if any."""

    fits: bool
    sentence: str
    forecast: Forecast | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A run before a hand-over: what would move where, and both courses."""

    run: Run
    split: Split
    told: str
    stays: str
    stay: Course
    move: Course | None  # None where nothing would move


def choices_for(run: Run, by: User) -> list[Account]:
    """Return the accounts that a person may hand a run over to, those of the run last."""
    mine = set(move.sources_of(run, Wish(to=())))
    rows = touchable(Account.objects.filter(owner=run.owner_id, archived_at=None), by, Role.SEND)
    found = [account for account in rows.defer("credentials", "webhook") if not move.why_not(run, account)]
    return sorted(found, key=lambda account: (account.pk in mine, account.name, account.pk))


def choices_for_all(runs: Sequence[Run], by: User, *, but: int | None = None) -> list[Account]:
    """Return the accounts to which all of these runs may be handed over, except for `but`."""
    if not runs:
        return []
    rest = [{account.pk for account in choices_for(run, by)} for run in runs[1:]]
    first = choices_for(runs[0], by)
    return [each for each in first if each.pk != but and all(each.pk in found for found in rest)]


def preview(run: Run, wish: Wish, *, now: datetime, by: User | None = None) -> Preview:
    """Return what a hand-over would do now; nothing is changed."""
    move.refuse_ended(run)
    chosen = list(Account.objects.filter(pk__in=wish.to).defer("credentials", "webhook"))
    move.refuse_unable(run, chosen, wish, by)
    sources = move.sources_of(run, wish)
    split = count(run, wish, sources, now=now)
    names = {account.pk: account for account in Account.objects.filter(pk__in={*split.moves, *split.left})}
    return Preview(
        run=run,
        split=split,
        told=words.moves(split, names),
        stays=words.stays(split),
        stay=_as_it_is(run, now=now),
        move=_handed_over(run, split, sources, now=now) if split.moved else None,
    )


def _as_it_is(run: Run, *, now: datetime) -> Course:
    """Return how the run goes on where it is. An account that cannot send has no end."""
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    stopped = Account.objects.filter(pk__in=pending.order_by().values("account").distinct())
    stopped = stopped.exclude(status=Account.Status.ACTIVE, archived_at=None)
    if found := list(stopped.defer("credentials", "webhook")):
        return Course(fits=False, sentence=words.stuck(found, run.pending))
    return _course(forecasts.forecast(run, now=now))


def _handed_over(run: Run, split: Split, sources: Collection[int], *, now: datetime) -> Course:
    """Return how the run goes on with the new accounts. Those who stay with a stopped account wait for it."""
    accounts = list(
        Account.objects.filter(run_accounts__run=run).union(Account.objects.filter(pk__in=split.moves))
    )
    able = sorted(
        (each for each in accounts if each.status == Account.Status.ACTIVE), key=lambda each: each.pk
    )
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    targets = split.left + Counter(split.moves)
    targets.update({pk: pending.filter(account=pk).count() for pk in {each.pk for each in able} - {*sources}})
    plan = Plan(
        accounts=able,
        targets={account.pk: targets[account.pk] for account in able if targets[account.pk]},
        parts=max(1, len(run.parts)),
        action=run.action,
        window=window_of(run),
        fires_at=max(now, run.undo_until or now),
        priority=run.priority,
        resumes_by_itself=run.resumes_by_itself,
        drip=run.drip,
        run=run,
        planned=False,
        new=lambda account, *_: Strangers(new=split.people.get(account.pk, 0)),
    )
    course = _course(foresee(plan, now=now))
    waiting = sum(split.left.values()) - sum(split.left[account.pk] for account in able)
    return replace(course, sentence=f"{course.sentence} {words.waiting(waiting)}".strip())


def _course(forecast: Forecast) -> Course:
    sentence = f"{forecast.sentence} {forecast.suggestion}".strip()
    return Course(fits=forecast.fits, sentence=sentence, forecast=forecast)
