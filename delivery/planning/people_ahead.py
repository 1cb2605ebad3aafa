"""Gives accounts of a forecast what is left of their limits of new people and new chats (SPEC N2, N3).

A run that is not made yet has no plan for its new people: they get the days that the engine would give them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from accounts.models import Account, OwnLimits
from delivery.pacing import Limits
from delivery.planning import new_people
from delivery.planning.diary import Diary, NoRoomError, Slot
from delivery.planning.values import Allowance, Job, NewChats, Planned, Sender, Who
from delivery.sessions import new_chats
from delivery.sessions.first_contacts import USUAL

LONGEST_DAYS = 366  # of a plan: further ahead than a forecast looks


def new_chats_of(accounts: Sequence[Account], *, now: datetime) -> dict[int, NewChats]:
    """Return what the services allow of new chats, of the accounts that have a quota or a lock at present."""
    found = {}
    for account in accounts:
        locked_until, size = account.first_contacts_until, _size(account)
        quota = new_chats.quota(account.pk, now=now) if size is not None else None
        if quota is not None:
            found[account.pk] = NewChats(
                left=quota.left,
                until=quota.until or now + USUAL,  # as a lock without an end
                size=size or 0,
                locked_until=locked_until,
            )
        elif locked_until is not None and locked_until > now:
            found[account.pk] = NewChats(locked_until=locked_until)
    return found


def _size(account: Account) -> int | None:
    """Return the quota that the account's service told; callers that forecast read it with the account."""
    try:
        return account.own_limits.new_chats
    except OwnLimits.DoesNotExist:
        return None


class Budgets:
    """The rest of the limits of new people and new chats of accounts, each read once."""

    def __init__(self, chats: Mapping[int, NewChats], *, now: datetime) -> None:
        self.chats = chats
        self.now = now
        self._known: dict[tuple[int, str], Allowance] = {}

    def applied(self, sender: Sender, account: Account) -> Sender:
        """Return an account with its limits, and with a day for each new person to whom it is to write."""
        people = {}
        for action in sorted({job.action for job in sender.jobs if job.who is not Who.KNOWN}):
            limits = sender.allowances[action].limits
            if new_people.limit_people(limits):
                people[action] = self._of(account, action, limits)
        ready = replace(sender, people=people, new_chats=self.chats.get(account.pk, NewChats()))
        return planned(ready, now=self.now)

    def _of(self, account: Account, action: str, limits: Limits) -> Allowance:
        key = account.pk, action
        if key not in self._known:
            self._known[key] = new_people.allowance(account, action, limits, now=self.now)
        return self._known[key]


def planned(sender: Sender, *, now: datetime) -> Sender:
    """Return an account whose new people all have their days, as the engine plans them when it makes a run."""
    jobs = list(sender.jobs)
    for action, budget in sender.people.items():
        diary = Diary(zone=sender.zone, now=now, room=budget.room, hours=sender.hours)
        theirs = [job for job in jobs if job.action == action and job.who is not Who.KNOWN]
        for job in theirs:
            for times in job.planned:
                diary.enter(max(0, diary.day_of(times.at)), times.targets)
        # The new people of a drip are spread when their times have come.
        at_once = [job for job in theirs if not job.planned and job.spacing == (0.0, 0.0)]
        jobs = _with_days(jobs, at_once, diary, budget, now=now)
    return replace(sender, jobs=jobs)


def _with_days(
    jobs: Sequence[Job], without: Iterable[Job], diary: Diary, budget: Allowance, *, now: datetime
) -> list[Job]:
    """Give the new people of each run days with room, the run that is fired first before the others."""
    runs: dict[tuple[object, ...], list[Job]] = {}
    for job in sorted(without, key=lambda each: each.ready_at):
        runs.setdefault((job.ready_at, job.rank, job.window, job.own), []).append(job)
    days = dict[int, Sequence[Planned]]()
    for same_run in runs.values():
        slots = _slots(diary, same_run, budget, now=now)
        days |= {id(job): each for job, each in zip(same_run, _shared(slots, same_run), strict=True)}
    return [replace(job, planned=days[id(job)]) if days.get(id(job)) else job for job in jobs]


def _slots(diary: Diary, jobs: Sequence[Job], budget: Allowance, *, now: datetime) -> list[Slot]:
    """Return the days of a run's new people, as far ahead as a forecast looks; empty where no day has room."""
    caps = [*(budget.day_caps[-1:]), *(rolling.cap for rolling in budget.rolling)]
    targets = min(sum(job.targets for job in jobs), min(caps) * LONGEST_DAYS)
    try:
        return diary.openings(jobs[0].window, parts=1, targets=targets, after=max(now, jobs[0].ready_at))
    except NoRoomError:
        return []


def _shared(slots: Sequence[Slot], jobs: Sequence[Job]) -> list[list[Planned]]:
    """Share the places of each day out between the jobs of one run, by their sizes: they are not kept apart there."""
    total, ends = sum(job.targets for job in jobs), list(accumulate(job.targets for job in jobs))
    shared: list[list[Planned]] = [[] for _ in jobs]
    passed = 0
    for slot in slots:
        after = passed + slot.targets
        bounds = [0, *ends]
        for place in range(len(jobs)):
            first, last = bounds[place], bounds[place + 1]
            count = _part(after, first, last, total) - _part(passed, first, last, total)
            if count:
                shared[place].append(Planned(at=slot.at, targets=count))
        passed = after
    return shared


def _part(places: int, first: int, last: int, total: int) -> int:
    """Return how many of the first `places` belong to the part from `first` to `last` of `total`."""
    return places * last // total - places * first // total
