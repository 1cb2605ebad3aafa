"""Simulates one account over the days, as the engine would serve its runs. Pure.

There is one step per window, day and turn of a run, however many targets there are.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from zoneinfo import ZoneInfo

from delivery.pacing import Limits, recovered, strictest
from delivery.planning.rolling import Use
from delivery.planning.spacing import Spacing, spacing_of
from delivery.planning.values import Allowance, Job, Pause, PauseCause, Point, Sender, Timeline
from delivery.window import Window, all_open_at, first_close, window_end_at

LONGEST = timedelta(days=366)  # further ahead the limits are unknown
NEVER = 2 * LONGEST  # until windows open together that never do

FULL = {PauseCause.DAILY_CAP, PauseCause.SPAN_CAP}

Delay = Callable[[float, float], float]  # returns the gap at an error rate


@dataclass(slots=True)
class _Stretch:
    """The progress of an action's spacing: messages since it began, and when the next may leave."""

    messages: int
    next_at: datetime


class AccountSimulation:
    """The simulated future of an account. It serves the first of its runs, by rank, that may send."""

    def __init__(self, sender: Sender, *, now: datetime, minute: float, delay: Delay) -> None:
        self.sender = sender
        self.minute = minute
        self.delay = delay
        self.jobs = sorted((job for job in sender.jobs if job.targets), key=lambda job: job.rank)
        self.left = [job.targets for job in self.jobs]
        self.own = next((at for at, job in enumerate(self.jobs) if job.own), None)
        self.slow, self.clean = sender.slow_down.factor, sender.slow_down.clean
        self.spacings = [self._spacing(job) for job in self.jobs]
        self.busy: set[int] = set()  # numbers of the days on which something is sent
        self.hours = _Hours(sender.hours)
        self.uses = {
            action: [Use(rolling) for rolling in allowance.rolling]
            for action, allowance in sender.allowances.items()
        }
        self.zone = ZoneInfo(sender.zone)
        self.today = now.astimezone(self.zone).date()
        self.ends = now + LONGEST
        self.now = max(now, sender.free_at or now).astimezone(UTC)
        self._begin_day()
        self.stretches = {
            job.action: self._stretch(job, spacing)
            for job, spacing in reversed(list(zip(self.jobs, self.spacings, strict=True)))
        }
        self.pauses: list[Pause] = []
        self.points: list[Point] = []

    def timeline(self) -> Timeline:
        """Return the timeline of the account's own run, until it is finished."""
        if self.own is None:
            return Timeline(starts_at=self.now, finishes_at=self.now)
        while self.left[self.own] and self.now < self.ends:
            self._step(self.own)
        return Timeline(
            starts_at=self.points[0].at if self.points else None,
            finishes_at=None if self.left[self.own] else self.points[-1].at,
            pauses=tuple(self.pauses),
            curve=tuple(self.points),
        )

    def _step(self, own: int) -> None:
        """Go to the next moment at which something changes; the run that has the turn sends meanwhile."""
        cause = self._cause(own)
        turn = next((at for at in self._waiting() if self._chance(at) <= self.now), None)
        until = self._until(turn)
        if turn is not None:
            until = self._serve(turn, until)
        if turn != own:
            self._pause(own, cause, until)
        self.now = until
        if self.now >= self.day_ends:
            self._begin_day()

    # Which run has the turn.

    def _waiting(self) -> Iterable[int]:
        return (at for at, left in enumerate(self.left) if left)

    def _chance(self, at: int) -> datetime:
        """Return the earliest moment from now on at which a run may send, by its window and its caps."""
        job = self.jobs[at]
        ready = max([self.now, job.ready_at, *self._openings(job)])
        if self._room_today(job) == 0:
            ready = max(ready, self.day_ends)
        return self.hours.opens_at(job.window, ready)

    def _until(self, turn: int | None) -> datetime:
        """Return when another run may get the turn, or the day ends, since tomorrow's cap differs."""
        if turn is None:
            return min([self.ends, *(self._chance(at) for at in self._waiting())])
        before = (self._chance(at) for at in self._waiting() if at < turn)
        return min([self.day_ends, self.hours.closes_at(self.jobs[turn].window, self.now), *before])

    def _room(self, job: Job) -> int | None:
        """Return how many targets of a run still fit into the day and the long spans; None is any number."""
        rooms = [use.room(self.now) // job.parts for use in self.uses[job.action]]
        today = self._room_today(job)
        return min([*rooms, *([] if today is None else [today])], default=None)

    def _room_today(self, job: Job) -> int | None:
        room = self.rooms[job.action]
        return None if room is None else max(0, room - self.sent_today.get(job.action, 0)) // job.parts

    def _openings(self, job: Job) -> list[datetime]:
        """Return when each long span of a run's action has room for a target."""
        return [use.opens_at(self.now, job.parts) for use in self.uses[job.action]]

    def _cause(self, at: int) -> PauseCause:
        """Return the reason why a run that does not have the turn waits."""
        job = self.jobs[at]
        ready = max(self.now, job.ready_at)
        if self.hours.opens_at(job.window, ready) > ready:
            return PauseCause.WINDOW
        if self._room_today(job) == 0:
            return PauseCause.DAILY_CAP
        return PauseCause.SPAN_CAP if self._room(job) == 0 else PauseCause.OTHER_RUNS

    # Sending and waiting.

    def _serve(self, turn: int, until: datetime) -> datetime:
        """Send the targets that fit before `until`; return the moment from which another run may get the turn."""
        job, spacing, stretch = self.jobs[turn], self.spacings[turn], self.stretches[self.jobs[turn].action]
        start = max(self.now, stretch.next_at)
        rested = (start - stretch.next_at).total_seconds() >= spacing.memory
        before = 0 if rested else stretch.messages // job.parts
        origin = start - timedelta(seconds=spacing.at(before))
        count = self._fitting(turn, spacing.within((until - origin).total_seconds()), before)
        if count == 0:
            return until
        last = origin + timedelta(seconds=spacing.at(before + count - 1))
        stretch.messages = (before + count) * job.parts
        stretch.next_at = origin + timedelta(seconds=spacing.at(before + count))
        self.sent_today[job.action] = self.sent_today.get(job.action, 0) + count * job.parts
        for use in self.uses[job.action]:
            use.add(start, last, count * job.parts)
        self.busy.add(self.day)
        if turn == self.own:
            done = job.targets - self.left[turn]
            self.points += [Point(at=start, done=done), Point(at=last, done=done + count)]
        self.left[turn] -= count
        faster = self._recover(count * job.parts)
        return last if faster or self.left[turn] == 0 or self._room(job) == 0 else until

    def _fitting(self, turn: int, in_time: int | None, before: int) -> int:
        """Return how many targets fit the time, the day and the rest of the run, at the present pace."""
        job = self.jobs[turn]
        slowed = ceil((self.sender.slow_down.every - self.clean) / job.parts) if self.slow > 1 else None
        bounds = [self.left[turn], self._room(job), in_time and in_time - before, slowed]
        return max(0, min(bound for bound in bounds if bound is not None))

    def _recover(self, messages: int) -> bool:
        """Count these messages towards the recovery of a slowed account; return whether it got faster."""
        slow_down = self.sender.slow_down
        if self.slow <= 1:
            return False
        self.clean += messages
        if self.clean < slow_down.every:
            return False
        self.slow = recovered(self.slow, self.clean, by=slow_down.by, every=slow_down.every)
        self.clean = 0
        self.spacings = [self._spacing(job) for job in self.jobs]
        return True

    def _pause(self, own: int, cause: PauseCause, until: datetime) -> None:
        """Record that the run waits, or still waits. Before the run is fired nothing is recorded."""
        job = self.jobs[own]
        at = max(self.now, job.ready_at)
        if until <= at:
            return
        ends = until if until < self.ends else None
        last = self.pauses[-1] if self.pauses else None
        if last and last.until == at and (last.cause is cause or last.cause in FULL):
            self.pauses[-1] = replace(last, until=ends)
        else:
            self.pauses.append(Pause(at=at, until=ends, cause=cause, done=job.targets - self.left[own]))

    # The clock.

    def _begin_day(self) -> None:
        self.day = (self.now.astimezone(self.zone).date() - self.today).days
        self.day_ends = window_end_at(self.sender.zone, 24, self.now)
        self.sent_today: dict[str, int] = {}
        self.rooms = {
            action: replace(allowance, rolling=()).room(self.day, self.busy)
            for action, allowance in self.sender.allowances.items()
        }

    def _spacing(self, job: Job) -> Spacing:
        allowance, (shortest, longest) = self.sender.allowances[job.action], job.spacing
        errors = allowance.errors if job.errors is None else job.errors
        return spacing_of(
            strictest(allowance.limits, Limits(gap_min=shortest, gap_max=longest)),
            parts=job.parts,
            minute=self.minute,
            slowest=allowance.slowest,
            delayed=lambda gap: self.delay(gap, errors) * self.slow,
        )

    def _stretch(self, job: Job, spacing: Spacing) -> _Stretch:
        """Return the spacing, continued from the messages of the last hour where an hour cap applies."""
        allowance: Allowance = self.sender.allowances[job.action]
        if allowance.hour_since is None or not allowance.limits.per_hour:
            return _Stretch(messages=0, next_at=self.now)
        waits = timedelta(seconds=spacing.at(allowance.hour_used // job.parts))
        return _Stretch(messages=allowance.hour_used, next_at=allowance.hour_since + waits)


class _Hours:
    """Windows, each looked up once and kept for as long as the answer holds."""

    def __init__(self, own: Window | None) -> None:
        self._own = () if own is None else (own,)  # the account's, beside those of each run
        self._known: dict[Window, tuple[datetime, datetime, datetime]] = {}

    def opens_at(self, window: Window, at: datetime) -> datetime:
        return max(at, self._span(window, at)[0])

    def closes_at(self, window: Window, at: datetime) -> datetime:
        return self._span(window, at)[1]

    def _span(self, window: Window, at: datetime) -> tuple[datetime, datetime]:
        """Return the usable start and the end of the window that is open at a moment, or of the next one."""
        since, opens, closes = self._known.get(window, (at, at, at))
        if not since <= at < closes:
            windows = (window, *self._own)
            since, opens = at, all_open_at(windows, at) or at + NEVER
            closes = first_close(windows, opens)
            self._known[window] = since, opens, closes
        return opens, closes
