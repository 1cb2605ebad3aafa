"""The limiter in plain Python: keeps every message for good and counts anew for each question.

It is the ledger as well: `memory` is what a limiter that forgot is rebuilt from.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from delivery.limiter import (
    Ask,
    Day,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Memory,
    Met,
    Unit,
    Use,
    Wait,
    WrongClock,
)
from delivery.pacing import LONG_SPANS, WEEK_HOURS, Pace, bucket_width
from delivery.states import WaitReason


@dataclass(slots=True, eq=False)
class Message:
    permit: str | None  # None once the limiter has no use for the name any more
    start: int
    seen: int | None = None  # None as long as it is open


@dataclass(slots=True, eq=False)
class Right:
    name: str | None
    start: int
    seen: int | None = None
    anew: bool = True


@dataclass(slots=True, kw_only=True)
class Twin:
    minute_ms: int
    hour_ms: int
    horizon_ms: int
    near_ms: int
    recheck_ms: int
    day: Day
    knows: bool = False
    disturbed: bool = False  # somebody changed it of whom the holder of the lease does not know
    reach: int = 0
    counted: set[str] = field(default_factory=set)  # the long spans for which the limiter has counts
    messages: list[Message] = field(default_factory=list)
    today: list[Message] = field(default_factory=list)
    rights: list[Right] = field(default_factory=list)
    counts_people: bool = False
    counts_week: bool = False
    batch: list[Message | None] = field(default_factory=list)  # None: was rebuilt, nobody knows which it is
    free_at: int = 0
    held_until: int = 0
    ended: int = 0

    def take(
        self, ask: Ask, *, now: int, lease_held: bool, names: Iterator[str]
    ) -> Granted | Wait | WrongClock | LeaseLost | Forgotten:
        """The permits that it grants are called by the `names` that the limiter gave to its own."""
        if not lease_held:
            return self._late(ask.settled, ask.returned, ask.people)
        if ask.expected is not None and not ask.expected.earliest_ms <= now <= ask.expected.latest_ms:
            return WrongClock(now_ms=now)
        self._settle_and_return(ask.settled, ask.returned, ask.people)
        if self._trusted():
            self.knows = self._answers_for(ask.pace, ask.day)
        if not self.knows:
            return Forgotten()
        self._begin(ask.day)
        self._trim(now, ask)
        return self._grant(ask, now, names)

    def settle(
        self,
        settled: Mapping[str, int],
        returned: Sequence[str],
        people: Sequence[Met] = (),
        *,
        lease_held: bool,
    ) -> object:
        if not lease_held:
            return self._late(settled, returned, people)
        self._settle_and_return(settled, returned, people)
        return self._noted()

    def hold(self, until: int) -> object:
        self.held_until = max(self.held_until, until)
        return self._noted()

    def dies(self, now: int) -> None:
        """End the pump: what it had begun counts as arriving now, and the next pump knows no mark."""
        for message in self._open():
            message.seen = max(message.start, now)
        for right in self.rights:
            if right.seen is None:
                right.seen, right.name = max(right.start, now), None
        self.forget()

    def never_told(self, permits: Sequence[str]) -> None:
        """The answer that granted these was lost: nobody uses them, and the next call does not know the state."""
        for permit in permits:
            if message := self._find(permit):
                self._drop(message)
        self.rights = [right for right in self.rights if right.name not in permits]
        self.forget()

    def forget(self) -> None:
        self.knows = False

    def _trusted(self) -> bool:
        self.knows = self.knows and not self.disturbed
        return self.knows

    def _late(
        self,
        settled: Mapping[str, int],
        returned: Sequence[str],
        people: Sequence[Met],
    ) -> LeaseLost:
        """Apply the report of a pump that lost its lease."""
        self._settle_and_return(settled, returned, people)
        self.disturbed = self.disturbed or bool(settled or returned or people)
        return LeaseLost()

    def memory(self, pace: Pace, day: Day, now: int) -> Memory:
        reach = self._reach(pace)
        # By the clock of a worker that is behind, in whose day it still is.
        now = min(now, day.end_ms - 1)
        settled = [m for m in self.messages if m.seen is not None]
        return Memory(
            day=day,
            day_used=len(self._messages_of(day)),
            reach_ms=reach,
            times_ms=[m.seen for m in settled if m.seen is not None and m.seen > now - reach],
            in_flight={m.permit: m.start for m in self._open() if m.permit},
            counts={span: self._buckets(span) for span in self._spans(pace).values()},
            rights={r.name: r.start for r in self.rights if r.name and r.seen is None},
            counts_people=pace.counts_people,
            new_used=len(self._people_of(day)),
            new_late=[r.seen for r in self.rights if r.seen is not None and r.seen >= day.end_ms],
            new_counts={self._week(): self._week_buckets()} if pace.new_per_week else {},
            batch=len(self.batch),
            last_ms=max((m.start for m in settled), default=0),
            free_at_ms=self.free_at,
            held_until_ms=self.held_until,
        )

    def rebuild(self, pace: Pace, day: Day) -> object:
        self.knows, self.disturbed = True, False
        self.reach = self._reach(pace)
        self.counted = set(self._spans(pace))
        self.counts_people, self.counts_week = pace.counts_people, bool(pace.new_per_week)
        self.day, self.today = day, self._messages_of(day)
        self.batch = [None] * len(self.batch)
        self.ended = max((m.start for m in self.messages if m.seen is not None), default=0)
        for message in self.messages:
            if message.seen is not None:
                message.permit = None
        return Done()

    def peek(self, pace: Pace, day: Day, now: int) -> Use | Forgotten:
        if not self.knows or not self._answers_for(pace, day):
            return Forgotten()
        return Use(
            minute=self._count(now, self.minute_ms) if pace.per_minute or pace.per_hour else None,
            hour=self._count(now, self.hour_ms) if pace.per_hour else None,
            day=len(self.today if day.start_ms == self.day.start_ms else self._messages_of(day)),
            planned=sum(m.start > now for m in self._open()),
            free_at_ms=self.free_at,
            held_until_ms=self.held_until,
            long={name: self._count_long(now, span) for name, span in self._spans(pace).items()},
            new_day=len(self._people_of(day)) if pace.counts_people else 0,
            new_week=self._count_week(now) if pace.new_per_week else None,
            rights=sum(r.seen is None for r in self.rights) if pace.counts_people else 0,
        )

    def _noted(self) -> Done | Forgotten:
        return Done() if self._trusted() else Forgotten()

    def _open(self) -> list[Message]:
        return [m for m in self.messages if m.seen is None]

    def _find(self, permit: str) -> Message | None:
        return next((m for m in self.messages if m.permit == permit), None)

    def _reach(self, pace: Pace) -> int:
        if pace.per_hour:
            return self.hour_ms
        return self.minute_ms if pace.per_minute else 0

    def _count(self, at: int, span: int) -> int:
        return sum(m.seen is None or m.seen > at - span for m in self.messages)

    def _spans(self, pace: Pace) -> dict[str, int]:
        return {name: LONG_SPANS[name] * self.hour_ms for name in pace.long_caps}

    def _buckets(self, span: int) -> Counter[int]:
        return Counter(m.seen // bucket_width(span) for m in self.messages if m.seen is not None)

    def _count_long(self, at: int, span: int) -> int:
        return sum(m.seen is None or _leaves(m.seen, span) > at for m in self.messages)

    def _week(self) -> int:
        return WEEK_HOURS * self.hour_ms

    def _week_buckets(self) -> Counter[int]:
        width = bucket_width(self._week())
        return Counter(r.seen // width for r in self.rights if r.seen is not None and r.anew)

    def _count_week(self, at: int) -> int:
        return sum(r.seen is None or (r.anew and _leaves(r.seen, self._week()) > at) for r in self.rights)

    def _people_of(self, day: Day) -> list[Right]:
        return [r for r in self.rights if r.start < day.end_ms and (r.seen is None or r.seen >= day.start_ms)]

    def _last_start(self) -> int:
        return max((m.start for m in self.messages), default=0)

    def _messages_of(self, day: Day) -> list[Message]:
        return [
            m for m in self.messages if m.start < day.end_ms and (m.seen is None or m.seen >= day.start_ms)
        ]

    def _settle_and_return(
        self,
        settled: Mapping[str, int],
        returned: Sequence[str],
        people: Sequence[Met],
    ) -> None:
        for met in people:
            self._meet(met)
        self.rights = [
            r for r in self.rights if r.name is None or r.seen is not None or r.name not in returned
        ]
        for permit, at in settled.items():
            if message := self._find(permit):
                message.seen = max(message.start if message.seen is None else message.seen, at)
                self.ended = max(self.ended, at)
        starts = [m.start for p in returned if (m := self._find(p)) and m.seen is None and self._drop(m)]
        last = self._last_start()
        self.free_at = min([self.free_at, *(start for start in starts if start > last)])

    def _meet(self, met: Met) -> None:
        """Count a message to a person, whose place in the week moves here from their last message."""
        at = max(met.at_ms, met.before_ms)
        if met.right:
            right = next((r for r in self.rights if r.name == met.right and r.seen is None), None)
            if right is None:
                return
            right.seen, right.name = max(right.start, at), None
            right.anew = met.anew or met.before_ms > 0
            before = None if met.anew else self._place_of(met.before_ms, but=right)
            if before is not None:
                before.anew = False
        elif (last := self._place_of(met.before_ms)) is not None:
            last.seen = at

    def _place_of(self, seen: int, *, but: Right | None = None) -> Right | None:
        return next((r for r in self.rights if r.seen == seen and r.anew and r is not but), None)

    def _drop(self, message: Message) -> bool:
        self.messages.remove(message)
        if message in self.today:
            self.today.remove(message)
        if message in self.batch:
            self.batch.remove(message)
        return True

    def _answers_for(self, pace: Pace, day: Day) -> bool:
        same_or_later = day.start_ms == self.day.start_ms or day.start_ms >= self.day.end_ms
        known = self._reach(pace) <= self.reach and self._spans(pace).keys() <= self.counted
        people = self.counts_people >= pace.counts_people and self.counts_week >= bool(pace.new_per_week)
        return same_or_later and known and people

    def _begin(self, day: Day) -> None:
        if day.start_ms != self.day.start_ms:
            self.today = self._messages_of(day)
        self.day = day

    def _trim(self, now: int, ask: Ask) -> None:
        """Forget the names of messages that the limiter trims; the messages still count."""
        self.reach = self._reach(ask.pace)
        self.counted = set(self._spans(ask.pace))
        self.counts_people, self.counts_week = ask.pace.counts_people, bool(ask.pace.new_per_week)
        until = min(now - self.reach, self.day.end_ms - 1)
        for message in self.messages:
            if message.seen is not None and message.seen <= until:
                message.permit = None

    def _grant(self, ask: Ask, now: int, names: Iterator[str]) -> Granted | Wait:
        units: list[Unit] = []
        for gap in ask.gaps_ms:
            at, reason, possible = self._earliest(ask, now)
            full = ask.pace.per_day and len(self.today) + ask.cost > ask.pace.per_day
            if full and not (reason in LONG_SPANS and at > ask.day.end_ms):
                at, reason, possible = ask.day.end_ms, WaitReason.PER_DAY, False
            latest = min(now + self.horizon_ms, (units[-1].at_ms if units else now) + self.near_ms)
            if full or not possible or at > latest or at >= ask.day.end_ms:
                break
            units.append(self._grant_one(ask, at, gap, names))
        if not units:
            return self._wait(ask, at, reason, now)
        rights, anew = self._grant_rights(ask, units, now, names)
        return Granted(units=tuple(units), now_ms=now, rights=rights, anew=anew)

    def _grant_rights(
        self, ask: Ask, units: Sequence[Unit], now: int, names: Iterator[str]
    ) -> tuple[tuple[str, ...], int]:
        most = anew = min(len(units), ask.new_wanted)
        if ask.pace.new_per_day:
            most = min(most, ask.pace.new_per_day - len(self._people_of(self.day)))
        if ask.pace.new_per_week:
            anew = min(anew, ask.pace.new_per_week - self._count_week(now))
        made = [Right(next(names, "more than were granted"), unit.at_ms) for unit in units[: max(0, most)]]
        self.rights += made
        return tuple(right.name or "" for right in made), max(0, min(anew, len(made)))

    def _wait(self, ask: Ask, at: int, reason: WaitReason, now: int) -> Wait:
        until = at if reason in LONG_SPANS else min(at, ask.day.end_ms)
        return Wait(until_ms=until if until > now else now + self.recheck_ms, reason=reason, now_ms=now)

    def _grant_one(self, ask: Ask, at: int, gap: int, names: Iterator[str]) -> Unit:
        if self._rested(ask.pace, at):
            self.batch = []
        messages = [Message(permit=next(names, "more than were granted"), start=at) for _ in range(ask.cost)]
        self.messages += messages
        self.today += messages
        self.batch = [*self.batch, *messages] if ask.pace.batch_size else []
        self.free_at = at + gap
        return Unit(at_ms=at, permits=tuple(m.permit or "" for m in messages))

    def _earliest(self, ask: Ask, now: int) -> tuple[int, WaitReason, bool]:
        minute, minute_possible = self._room(ask.pace.per_minute, self.minute_ms, ask.cost, now)
        hour, hour_possible = self._room(ask.pace.per_hour, self.hour_ms, ask.cost, now)
        bounds = [
            (max(now, ask.day.start_ms), WaitReason.GAP),
            (self.free_at, WaitReason.GAP),
            (self.held_until, WaitReason.SLOWED),
            (minute, WaitReason.PER_MINUTE),
            (hour, WaitReason.PER_HOUR),
        ]
        longs = [
            (*self._long_room(ask.pace.long_caps[name], span, ask.cost, now), WaitReason(name))
            for name, span in self._spans(ask.pace).items()
        ]
        bounds += [(time, reason) for time, _, reason in longs]
        at, reason = max(bounds, key=lambda bound: bound[0])  # the first of equals
        if self._batch_is_full(ask) and not self._rested(ask.pace, at):
            at, reason = self._last() + ask.pace.batch_pause_ms, WaitReason.BATCH_PAUSE
        return at, reason, minute_possible and hour_possible and all(possible for _, possible, _ in longs)

    def _rested(self, pace: Pace, at: int) -> bool:
        return at - self._last() >= pace.batch_pause_ms

    def _last(self) -> int:
        """Return when a batch pause begins: the last message may have left later than planned."""
        return max(self.ended, self._last_start())

    def _batch_is_full(self, ask: Ask) -> bool:
        size = ask.pace.batch_size
        return bool(size and self.batch and len(self.batch) + ask.cost > size)

    def _long_room(self, cap: int, span: int, cost: int, now: int) -> tuple[int, bool]:
        """The same for a long span, in which each message counts until the end of its bucket."""
        times = sorted({0, now, *(_leaves(m.seen, span) for m in self.messages if m.seen is not None)})
        for time in (0, *(each for each in times if each > now)):
            if self._count_long(time or now, span) + cost <= cap:
                return time, True
        starts = sorted(m.start for m in self._open())
        return max(starts[len(starts) + cost - cap - 1] + span, now + self.recheck_ms), False

    def _room(self, cap: int, span: int, cost: int, now: int) -> tuple[int, bool]:
        """The first time at which the window has room, tried out; and whether there is one."""
        times = sorted({0, *(m.seen + span for m in self.messages if m.seen is not None)})
        for time in times:
            if not cap or self._count(time, span) + cost <= cap:
                return time, True
        starts = sorted((m.start for m in self._open()), reverse=True)
        return max(starts[cap - cost] + span, now + self.recheck_ms), False


def _leaves(seen: int, span: int) -> int:
    """Return when a message leaves a long span: it counts as the last moment of its bucket."""
    width = bucket_width(span)
    return (seen // width + 1) * width - 1 + span
