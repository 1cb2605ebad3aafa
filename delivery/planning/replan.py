"""Moves planned work off days that are full, and tells the operator (SPEC P10, S6).

A day is full when its cap is reached, or would be by its planned work. The excess moves to the next days that have
room, inside the window and the send days of its run; a drip is planned again as a whole, so that its targets stay
apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import transaction

from accounts.models import Account
from delivery import live
from delivery.lifecycle import window_of
from delivery.limits.work_hours import hours_of
from delivery.models import Run
from delivery.planning import drip
from delivery.planning.diary import Diary, Load, NoRoomError, Overflow, Slot, overflows
from delivery.planning.overbooked import allowance_of, going_runs, loads_of
from delivery.planning.values import Allowance
from delivery.sentences import run_summary
from delivery.states import RunStatus
from delivery.window import window_end_at, window_start_at

MOST_AT_ONCE = 50_000  # targets that one transaction moves, so that the run is not locked for long


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The number of targets of a run that moved to another day, and the time of the first of them."""

    run_id: int
    targets: int
    first: datetime


def full_day(account: Account, action: str, *, now: datetime, until: datetime | None = None) -> list[Moved]:
    """Move the work that a full account still has planned for today, MOST_AT_ONCE targets at a time.

    The engine calls this when the limiter says that the day is full, or that a longer span is full `until` a moment. An
    empty result means that nothing is left before that day.
    """
    zone = ZoneInfo(account.zone)
    days = 1 if until is None else (until.astimezone(zone).date() - now.astimezone(zone).date()).days
    return _relieve(account, action, now=now, closed_until=days)


def relieve(account: Account, action: str, *, now: datetime) -> list[Moved]:
    """Move work off days that would be over their cap, MOST_AT_ONCE at a time; empty if there is no such day."""
    return _relieve(account, action, now=now, closed_until=0)


@transaction.atomic
def _relieve(account: Account, action: str, *, now: datetime, closed_until: int) -> list[Moved]:
    going = going_runs(account, action).select_for_update(of=("self",), no_key=True)
    runs = {run.pk: run for run in going.order_by("pk")}
    account = Account.objects.select_for_update(no_key=True).defer("credentials").get(pk=account.pk)
    loads = loads_of(account, list(runs.values()), now=now)
    allowance = allowance_of(account, action, now=now)
    if allowance.day_caps or allowance.rolling:
        allowance = replace(allowance, closed_until=closed_until)
    excess = [each for each in overflows(loads, allowance.room) if allowance.fits(each.load.parts)]
    if not excess:
        return []
    mover = _Mover(account, allowance, runs, now)
    mover.keep(loads, excess)
    moved = list(mover.move(excess, loads))
    for each in moved:
        _say(runs[each.run_id], account, allowance, excess, each.first)
    return moved


class _Mover:
    """Finds new days for excess work, in the diary of one account."""

    def __init__(self, account: Account, allowance: Allowance, runs: dict[int, Run], now: datetime) -> None:
        self.account = account
        self.allowance = allowance
        self.runs = runs
        self.now = now
        self.diary = Diary(zone=account.zone, now=now, room=allowance.room, hours=hours_of(account))

    def keep(self, loads: Sequence[Load], excess: Sequence[Overflow]) -> None:
        """Enter the work that stays on its day. No target of a drip stays once some of them have to move."""
        stays = {(each.load.run_id, each.load.day): each.stays for each in excess}
        dripping = {each.load.run_id for each in excess if self.runs[each.load.run_id].drip}
        for load in loads:
            if load.run_id not in dripping:
                self.diary.enter(load.day, stays.get((load.run_id, load.day), load.targets) * load.parts)

    def move(self, excess: Sequence[Overflow], loads: Sequence[Load]) -> Iterator[Moved]:
        left, dripped = MOST_AT_ONCE, set()
        for each in excess:
            run = self.runs[each.load.run_id]
            if left <= 0 or run.pk in dripped:
                continue
            try:
                if run.drip:
                    dripped.add(run.pk)
                    slots = self._drip(run, sum(load.targets for load in loads if load.run_id == run.pk))
                else:
                    slots = self._openings(run, each, most=left)
            except NoRoomError:
                continue  # it keeps its times, and waits day by day
            count = sum(slot.targets for slot in slots)
            left -= count
            yield Moved(run_id=run.pk, targets=count, first=slots[0].at)

    def _drip(self, run: Run, targets: int) -> list[Slot]:
        limits = self.allowance.limits
        slots = drip.times(run, self.account, self.diary, targets=targets, limits=limits, now=self.now)
        drip.give(slots, run, self.account)
        return slots

    def _openings(self, run: Run, each: Overflow, *, most: int) -> list[Slot]:
        starts, ends = self._day(each.load.day)
        slots = self.diary.openings(
            window_of(run), parts=each.load.parts, targets=min(each.targets, most), after=ends
        )
        since = drip.LONG_AGO if each.load.day == 0 else starts
        drip.place(slots, run_id=run.pk, account_id=self.account.pk, since=since, until=ends, skip=each.stays)
        return slots

    def _day(self, number: int) -> tuple[datetime, datetime]:
        """Return when a day of the account begins and ends, found from its noon, since no clock change is near noon."""
        noon = window_start_at(self.account.zone, 12, self.now)
        at = window_start_at(self.account.zone, 12, noon + timedelta(days=number))
        return window_start_at(self.account.zone, 0, at), window_end_at(self.account.zone, 24, at)


def _say(
    run: Run, account: Account, allowance: Allowance, excess: Sequence[Overflow], first: datetime
) -> None:
    """Write the move into the run's summary; a paused run keeps the reason of its pause."""
    if run.status in {RunStatus.QUEUED, RunStatus.RUNNING}:
        targets = sum(each.targets for each in excess if each.load.run_id == run.pk)
        cap = allowance.cap(0)
        run.summary = run_summary.replanned(run, account, cap=cap, targets=targets, first=first)
        run.save(update_fields=["summary"])
    transaction.on_commit(lambda: live.run_changed(run.pk, run.owner_id))
