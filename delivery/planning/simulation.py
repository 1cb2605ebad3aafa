"""Simulates one account over the days, as the engine would serve its runs. Pure.

There is one step per window, day and turn of a run, however many targets there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from zoneinfo import ZoneInfo

from delivery.pacing import Limits, recovered, strictest
from delivery.planning.arrivals import ChatsLeft, Queue
from delivery.planning.rolling import Use
from delivery.planning.spacing import Spacing, spacing_of
from delivery.planning.values import Allowance, Job, Pause, PauseCause, Point, Sender, Timeline, Who
from delivery.window import Window, all_open_at, first_close, window_end_at, window_start_at

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
        self.moved: set[int] = set()  # jobs that found a day full
        self.sent: dict[str, Counter[int]] = {action: Counter() for action in sender.allowances}  # by day
        self.delay = delay
        self.jobs = sorted((job for job in sender.jobs if job.targets), key=lambda job: job.rank)
        self.queues = [Queue(job) for job in self.jobs]
        self.own = [at for at, job in enumerate(self.jobs) if job.own]
        self.slow, self.clean = sender.slow_down.factor, sender.slow_down.clean
        self.spacings = [self._spacing(job) for job in self.jobs]
        self.busy: set[int] = set()  # numbers of the days on which something is sent
        self.met: dict[str, Counter[int]] = {
            action: Counter() for action in sender.people
        }  # new people by day
        self.chats = ChatsLeft(sender.new_chats)
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
        self.people: list[Point] = []
        self.done = 0

    def timeline(self) -> Timeline:
        """Return the timeline of the account's own run, until it is finished."""
        if not self.own:
            return Timeline(starts_at=self.now, finishes_at=self.now)
        while self._own_left() and self.now < self.ends:
            self._step()
        return Timeline(
            starts_at=self.points[0].at if self.points else None,
            finishes_at=None if self._own_left() else self.points[-1].at,
            pauses=tuple(self.pauses),
            curve=tuple(self.points),
            people=tuple(self.people),
        )

    def _own_left(self) -> list[int]:
        """Return the jobs of the run itself that have something left."""
        return [at for at in self.own if self.queues[at].left]

    def _step(self) -> None:
        """Go to the next moment at which something changes; the run that has the turn sends meanwhile."""
        chances = {at: self._chance(at) for at in self._waiting()}
        self._note_moved(chances)
        first = min(self._own_left(), key=lambda at: chances[at])
        cause = self._cause(first)
        turn = next((at for at, chance in chances.items() if chance <= self.now), None)
        until = self._until(turn, chances)
        if turn is not None:
            until = self._serve(turn, until)
        if turn is None or not self.jobs[turn].own:
            self._pause(first, cause, until)
        self.now = until
        if self.now >= self.day_ends:
            self._begin_day()

    # Which run has the turn.

    def _waiting(self) -> Iterable[int]:
        return (at for at, queue in enumerate(self.queues) if queue.left)

    def _chance(self, at: int) -> datetime:
        """Return the earliest moment from now on at which a run may send, by its plan, its window and its caps."""
        job = self.jobs[at]
        ready = max([self.now, self.queues[at].ready_at(self.ends), *self._openings(job)])
        if 0 in {self._room_today(job), self._places_today(job), self._room_beside_plans(at)}:
            ready = max(ready, self.day_ends)
        if job.who is Who.NEW_CHAT:
            ready = self.chats.opens_at(ready)
        return self.hours.opens_at(job.window, ready)

    def _until(self, turn: int | None, chances: Mapping[int, datetime]) -> datetime:
        """Return when another run may get the turn, or the day ends, since tomorrow's cap differs."""
        if turn is None:
            return min([self.ends, *chances.values()])
        before = (chance for at, chance in chances.items() if at < turn)
        return min([self.day_ends, self.hours.closes_at(self.jobs[turn].window, self.now), *before])

    def _room(self, job: Job) -> int | None:
        """Return how many targets of a run still fit into the day and the long spans; None is any number."""
        rooms = [use.room(self.now) // job.parts for use in self.uses[job.action]]
        today = self._room_today(job)
        return min([*rooms, *([] if today is None else [today])], default=None)

    def _places_today(self, job: Job) -> int | None:
        """Return how many new people may still get something of a run today; None is any number."""
        budget = self.sender.people.get(job.action)
        if budget is None or job.who is Who.KNOWN:
            return None
        met = self.met[job.action]
        room = budget.room(self.day, met)
        return None if room is None else max(0, room - met[self.day])

    def _room_today(self, job: Job) -> int | None:
        room = self.rooms[job.action]
        return None if room is None else max(0, room - self.sent[job.action][self.day]) // job.parts

    def _room_beside_plans(self, at: int) -> int | None:
        """Return the room of a job that found a day full: it gets what is left of later days beside planned work.

        The engine moves it there (`replan.py`), and leaves planned work in its place. None is any number.
        """
        job = self.jobs[at]
        allowance = self.sender.allowances[job.action]
        if at not in self.moved or not (allowance.day_caps or allowance.rolling):
            return None
        entered = self.sent[job.action] + self.coming[job.action]
        room = allowance.room(self.day, entered)
        if room is None:
            return None
        mine = self.queues[at].waiting_between(self.day_starts, self.day_ends)
        return max(0, room - entered[self.day]) // job.parts + mine

    def _openings(self, job: Job) -> list[datetime]:
        """Return when each long span of a run's action has room for a target."""
        return [use.opens_at(self.now, job.parts) for use in self.uses[job.action]]

    def _cause(self, at: int) -> PauseCause:
        """Return the reason why a run that does not have the turn waits."""
        job = self.jobs[at]
        ready = max(self.now, job.ready_at)
        if self.hours.opens_at(job.window, ready) > ready:
            return PauseCause.WINDOW
        if (full := self._full(at)) is not None:
            return full
        if job.who is Who.NEW_CHAT and self.chats.opens_at(ready) > ready:
            return PauseCause.NEW_CHATS
        if self.queues[at].ready_at(self.ends) > ready or self._places_today(job) == 0:
            return PauseCause.PLANNED if job.who is Who.KNOWN else PauseCause.NEW_PEOPLE
        return PauseCause.OTHER_RUNS

    def _full(self, at: int) -> PauseCause | None:
        """Return which cap of messages leaves a run no room now."""
        job = self.jobs[at]
        if self._room_today(job) == 0:
            return PauseCause.DAILY_CAP
        if self._room(job) == 0:
            return PauseCause.SPAN_CAP
        if self._room_beside_plans(at) == 0:
            caps = self.sender.allowances[job.action].day_caps
            return PauseCause.DAILY_CAP if caps else PauseCause.SPAN_CAP
        return None

    # Sending and waiting.

    def _serve(self, turn: int, until: datetime) -> datetime:
        """Send the targets that fit before `until`; return the moment from which another run may get the turn."""
        job, spacing, stretch = self.jobs[turn], self.spacings[turn], self.stretches[self.jobs[turn].action]
        start = max(self.now, stretch.next_at)
        rested = (start - stretch.next_at).total_seconds() >= spacing.memory
        before = 0 if rested else stretch.messages // job.parts
        origin = start - timedelta(seconds=spacing.at(before))
        in_time = spacing.within((until - origin).total_seconds())
        count = self._fitting(turn, in_time, before)
        if count == 0:
            return until
        last = origin + timedelta(seconds=spacing.at(before + count - 1))
        stretch.messages = (before + count) * job.parts
        stretch.next_at = origin + timedelta(seconds=spacing.at(before + count))
        self.sent[job.action][self.day] += count * job.parts
        for use in self.uses[job.action]:
            use.add(start, last, count * job.parts)
        self.busy.add(self.day)
        self._take(turn, count)
        self._count_people(job, last, count)
        if job.own:
            self._draw(job, start, last, count)
        self._recover(count * job.parts)
        return until if in_time is not None and count == in_time - before else last

    def _take(self, turn: int, count: int) -> None:
        """Take targets of a job, and those of them that have a time out of the plan."""
        job = self.jobs[turn]
        for at, targets in self.queues[turn].take(count):
            if (day := self._day_of(at)) >= self.day:
                self.coming[job.action][day] -= targets * job.parts

    def _coming(self, action: str) -> Counter[int]:
        """Return the messages planned for today and each later day; what is overdue has no place any more."""
        coming = Counter[int]()
        for job, queue in zip(self.jobs, self.queues, strict=True):
            if job.planned and job.action == action:
                for at, targets in queue.waiting():
                    coming[max(self._day_of(at), -1)] += targets * job.parts
        return Counter({day: count for day, count in coming.items() if day >= self.day})

    def _day_of(self, at: datetime) -> int:
        return (at.astimezone(self.zone).date() - self.today).days

    def _count_people(self, job: Job, last: datetime, count: int) -> None:
        if job.who is not Who.KNOWN and job.action in self.met:
            self.met[job.action][self.day] += count
        if job.who is Who.NEW_CHAT:
            self.chats.take(last, count)

    def _draw(self, job: Job, start: datetime, last: datetime, count: int) -> None:
        """Add targets of the run itself to its curve, and new people to theirs."""
        self.points += [Point(at=start, done=self.done), Point(at=last, done=self.done + count)]
        self.done += count
        if job.who is not Who.KNOWN:
            met = self.people[-1].done if self.people else 0
            self.people += [Point(at=start, done=met), Point(at=last, done=met + count)]

    def _fitting(self, turn: int, in_time: int | None, before: int) -> int:
        """Return how many targets fit the time, the day and the rest of the run, at the present pace."""
        job = self.jobs[turn]
        slowed = ceil((self.sender.slow_down.every - self.clean) / job.parts) if self.slow > 1 else None
        released = self.queues[turn].released(self.now)
        chats = self.chats.left(self.now) if job.who is Who.NEW_CHAT else None
        rooms = [self._room(job), self._places_today(job), self._room_beside_plans(turn)]
        bounds = [released, *rooms, chats, in_time and in_time - before, slowed]
        return max(0, min(bound for bound in bounds if bound is not None))

    def _recover(self, messages: int) -> None:
        """Count these messages towards the recovery of a slowed account."""
        slow_down = self.sender.slow_down
        if self.slow <= 1:
            return
        self.clean += messages
        if self.clean < slow_down.every:
            return
        self.slow = recovered(self.slow, self.clean, by=slow_down.by, every=slow_down.every)
        self.clean = 0
        self.spacings = [self._spacing(job) for job in self.jobs]

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
            self.pauses.append(Pause(at=at, until=ends, cause=cause, done=self.done))

    # The clock.

    def _begin_day(self) -> None:
        self.day = self._day_of(self.now)
        self.day_starts = window_start_at(self.sender.zone, 0, self.now)
        self.day_ends = window_end_at(self.sender.zone, 24, self.now)
        self.coming = {action: self._coming(action) for action in self.sender.allowances}
        self.rooms = {
            action: replace(allowance, rolling=()).room(self.day, self.busy)
            for action, allowance in self.sender.allowances.items()
        }

    def _note_moved(self, chances: Mapping[int, datetime]) -> None:
        """Note the jobs for which neither this day nor a longer span has room before tomorrow."""
        for at, chance in chances.items():
            ready = max(self.now, self.jobs[at].ready_at)
            due = ready < self.day_ends and self.queues[at].released(ready)
            if due and chance >= self.day_ends and self._room(self.jobs[at]) == 0:
                self.moved.add(at)

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
