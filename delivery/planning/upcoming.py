"""Adds scheduled runs that are not fired yet to the work of an account. Pure."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from delivery.planning.diary import Diary, NoRoomError
from delivery.planning.values import Allowance, Job, Sender, rank_of
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

    def job(self) -> Job:
        return Job(
            targets=self.targets,
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
    allowances = dict(sender.allowances)
    for drip in [each for each in theirs if each.drip][:MOST_DRIPS]:
        allowances[drip.action] = _reserving(drip, allowances[drip.action], sender, now)
    jobs = [each.job() for each in theirs if not each.drip]
    return replace(sender, jobs=[*sender.jobs, *jobs], allowances=allowances)


def _reserving(drip: Upcoming, allowance: Allowance, sender: Sender, now: datetime) -> Allowance:
    """Return the allowance that is left of the days after a drip has taken its places."""
    diary = Diary(zone=sender.zone, now=now, room=allowance.room, hours=sender.hours)
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
        return allowance
    reserved = Counter(allowance.reserved)
    for at in times:
        reserved[diary.day_of(at)] += drip.parts
    return replace(allowance, reserved=dict(reserved))
