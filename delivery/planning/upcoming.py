"""Adds scheduled runs that are not fired yet to the work of an account. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from delivery.planning.diary import Diary, NoRoomError
from delivery.planning.values import Job, Planned, Sender, Who, rank_of
from delivery.window import Window

# The most targets that are planned one by one: they fill the days that a forecast covers.
MOST_DRIPS = 20
MOST_PLANNED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """A run that a scheduled reminder will make, and about how many targets each of its accounts gets."""

    account_ids: Sequence[int]
    targets: int
    parts: int
    action: str
    window: Window
    fires_at: datetime
    priority: int
    drip: tuple[float, float] | None = None
    strangers: Mapping[int, int] = field(default_factory=dict)  # new people, by account

    def jobs(self, account_id: int | None) -> list[Job]:
        """Return the work of an account, known people first."""
        new = min(self.targets, self.strangers.get(account_id or 0, 0))
        known = self._job(self.targets - new)
        return [known, replace(known, targets=new, who=Who.NEW)] if new else [known]

    def _job(self, targets: int) -> Job:
        return Job(
            targets=targets,
            parts=self.parts,
            action=self.action,
            window=self.window,
            ready_at=self.fires_at,
            rank=rank_of(self.priority, self.fires_at),
        )


Scheduled = Callable[[datetime], Sequence[Upcoming]]  # the runs due until a moment, in order


def joined(sender: Sender, account_id: int, upcoming: Sequence[Upcoming], *, now: datetime) -> Sender:
    """Return an account with its coming work; actions for which it has no work yet are left out."""
    theirs = [
        each for each in upcoming if account_id in each.account_ids and each.action in sender.allowances
    ]
    drips = [each for each in theirs if each.drip][:MOST_DRIPS]
    jobs = [*sender.jobs, *(job for each in theirs if not each.drip for job in each.jobs(account_id))]
    for drip in drips:
        jobs += _dripping(drip, replace(sender, jobs=jobs), now)
    return replace(sender, jobs=jobs)


def _dripping(drip: Upcoming, sender: Sender, now: datetime) -> list[Job]:
    """Return the job of a drip with a time for each of its targets, beside all that has times already."""
    allowance, (whole, *_) = sender.allowances[drip.action], drip.jobs(None)
    diary = Diary(zone=sender.zone, now=now, room=allowance.room, hours=sender.hours)
    for job in sender.jobs:
        for each in job.planned if job.action == drip.action else ():
            diary.enter(max(0, diary.day_of(each.at)), each.targets * job.parts)
    try:
        times = diary.drip(
            drip.window,
            parts=drip.parts,
            targets=min(drip.targets, MOST_PLANNED) if allowance.fits(drip.parts) else 0,
            after=drip.fires_at,
            spacing=drip.drip or (0, 0),
            rng=random.Random(0),
        )
    except NoRoomError:
        return []
    planned = [Planned(at=at, targets=1) for at in times]
    return [replace(whole, targets=len(planned), planned=planned)]
