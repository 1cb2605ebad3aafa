"""The limiter under random histories: it answers as its twin does, and the receiver sees no cap crossed."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from redis import Redis

from delivery.clocks import Expected
from delivery.engine.lease import Lease, acquire, lease_key
from delivery.limiter import Ask, Day, Done, Forgotten, Granted, Limiter, Memory, Met, Unit, Wait, WrongClock
from delivery.pacing import Pace, bucket_width
from tests.delivery.limiter.limiter_twin import Twin
from tests.delivery.private_redis import PrivateRedis

ACCOUNT = 17
LOG, STATE = f"paceline:{{{ACCOUNT}}}:message:log", f"paceline:{{{ACCOUNT}}}:message:state"

# So short that minutes, days and single milliseconds often meet.
MINUTE, HOUR, DAY, HORIZON, NEAR = 60, 400, 1_000, 50, 30
START = 1_700_000_000_000


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with PrivateRedis() as server, server.client() as client:
        yield client


def lease_of(redis: Redis) -> Lease:
    lease = acquire(redis, ACCOUNT, next_fence=lambda: 1)
    assert lease is not None
    return lease


paces = st.builds(
    Pace,
    per_minute=st.sampled_from([0, 2, 3, 5, 8]),
    per_hour=st.sampled_from([0, 0, 4, 9, 20]),
    per_day=st.sampled_from([0, 3, 6, 15, 30]),
    batch_size=st.sampled_from([0, 0, 2, 5]),
    batch_pause_ms=st.sampled_from([20, 100]),
    per_24_hours=st.sampled_from([0, 0, 4, 12]),
    per_7_days=st.sampled_from([0, 0, 9, 25]),
    per_30_days=st.sampled_from([0, 0, 14, 40]),
    new_per_day=st.sampled_from([0, 0, 2, 5]),
    new_per_week=st.sampled_from([0, 0, 4, 9]),
)


@dataclass(frozen=True, kw_only=True)
class Wish:
    cost: int
    gaps: list[int]
    clock_ahead: int  # of the worker, which says what day it is


wishes = st.builds(
    Wish,
    cost=st.integers(1, 3),
    gaps=st.lists(st.sampled_from([0, 0, 1, 7, 25, 70]), min_size=1, max_size=6),
    clock_ahead=st.sampled_from([0, 0, 0, 0, -4, 4]),
)


class TwinMachine(RuleBasedStateMachine):
    """Whatever happens to an account, the limiter answers as the twin does."""

    redis: ClassVar[Redis]

    def __init__(self) -> None:
        super().__init__()
        self.redis.flushall()
        self.now = START
        self.offset = 0
        self.pace = Pace(per_minute=3, per_hour=0, per_day=0, batch_size=0, batch_pause_ms=0)
        self.limiter = Limiter(
            self.redis,
            minute_ms=MINUTE,
            hour_ms=HOUR,
            horizon_ms=HORIZON,
            near_ms=NEAR,
            now_ms=lambda: self.now,
        )
        self.twin = Twin(
            minute_ms=MINUTE,
            hour_ms=HOUR,
            horizon_ms=HORIZON,
            near_ms=NEAR,
            recheck_ms=1,
            day=self.day(),
        )
        self.permits: list[str] = []
        self.rights: list[str] = []
        self.lease = lease_of(self.redis)
        self.lost: Lease | None = None
        self.mark = ""
        self.copy: tuple[str, dict[str, bytes], Twin] = ("", {}, self.twin)

    def day(self, ahead: int = 0) -> Day:
        """The day by a clock that is `ahead`, in a zone that is `offset` from the first."""
        start = (self.now + ahead - self.offset) // DAY * DAY + self.offset
        return Day(start_ms=start, end_ms=start + DAY)

    def open_permits(self) -> list[str]:
        return [message.permit for message in self.twin.messages if message.permit and message.seen is None]

    @rule(
        by=st.one_of(
            st.integers(0, 20), st.integers(0, 150), st.sampled_from([HOUR, 3 * DAY, 30 * HOUR, 200 * HOUR])
        )
    )
    def time_passes(self, by: int) -> None:
        self.now += by

    @rule(pace=paces)
    def limits_change(self, pace: Pace) -> None:
        self.pace = pace

    @rule(wish=wishes, by_loser=st.sampled_from([False, False, True]))
    def take(self, wish: Wish, by_loser: bool) -> None:
        self.compare(wish, by_loser=by_loser)

    @rule(wish=wishes, by=st.integers(0, MINUTE), ago=st.integers(-3, 30))
    def take_once_all_is_answered(self, wish: Wish, by: int, ago: int) -> None:
        self.now += by
        self.compare(wish, settled=dict.fromkeys(self.open_permits(), self.now - ago))

    @rule(wish=wishes, by=st.integers(0, 10), kept=st.integers(0, 3))
    def take_after_the_last_came_back(self, wish: Wish, by: int, kept: int) -> None:
        self.now += by
        self.compare(wish, returned=self.open_permits()[kept:])

    @rule(data=st.data(), by_loser=st.booleans())
    def settle_and_return_some(self, data: st.DataObject, by_loser: bool) -> None:
        """Settle and return permits of any age, whatever was reported of them before."""
        some = st.lists(st.sampled_from(self.permits[-12:]), max_size=4) if self.permits else st.just([])
        settled = {permit: self.now - data.draw(st.integers(-3, 30)) for permit in data.draw(some)}
        returned = data.draw(some)
        lease = self.lost if by_loser and self.lost else self.lease
        answer = self.limiter.settle(lease, "message", settled, returned, mark=self.mark)
        assert self.heard(answer) == self.twin.settle(settled, returned, lease_held=lease is self.lease)

    @rule(data=st.data(), by_loser=st.booleans(), anew=st.booleans())
    def people_were_written_to(self, data: st.DataObject, by_loser: bool, anew: bool) -> None:
        some = st.lists(st.sampled_from(self.rights[-12:]), max_size=4) if self.rights else st.just([])
        people = [
            Met(right=right, at_ms=self.now - data.draw(st.integers(-3, 30)), anew=anew, before_ms=before)
            for right in data.draw(some)
            for before in [0 if anew else self.last_message_to(data)]
        ]
        returned = data.draw(some)
        lease = self.lost if by_loser and self.lost else self.lease
        answer = self.limiter.settle(lease, "message", {}, returned, mark=self.mark, people=people)
        heard = self.heard(answer)
        assert heard == self.twin.settle({}, returned, people, lease_held=lease is self.lease)

    @rule(data=st.data(), ago=st.integers(-3, 30))
    def a_person_of_today_gets_another_message(self, data: st.DataObject, ago: int) -> None:
        before = self.last_message_to(data, since=self.twin.day.start_ms)
        if before:
            people = [Met(at_ms=self.now - ago, before_ms=before)]
            answer = self.limiter.settle(self.lease, "message", {}, [], mark=self.mark, people=people)
            assert self.heard(answer) == self.twin.settle({}, [], people, lease_held=True)

    def last_message_to(self, data: st.DataObject, *, since: int = 0) -> int:
        """Return when somebody who has a place in the week got their last message; 0 if there is nobody."""
        times = sorted(
            {r.seen for r in self.twin.rights if r.seen is not None and r.anew and r.seen >= since}
        )
        return data.draw(st.sampled_from(times)) if times else 0

    @rule(ahead=st.one_of(st.integers(-20, 60), st.just(150)))
    def hold(self, ahead: int) -> None:
        until = self.now + ahead
        answer = self.limiter.hold(self.lease, "message", until, mark=self.mark)
        assert self.heard(answer) == self.twin.hold(until)

    @rule(trouble=st.sampled_from(["moves", "dies", "hands over", "is forgotten", "is rebuilt twice"]))
    def the_account(self, trouble: str) -> None:
        match trouble:
            case "moves":
                self.offset = 300 - self.offset
            case "dies":
                self.next_shift()
                self.mark = ""
                self.twin.dies(self.now)
                self.rebuild(self.day())
            case "hands over":
                if not self.open_permits():
                    self.next_shift()
            case "is forgotten":
                self.limiter.forget(ACCOUNT)
                self.twin.forget()
            case "is rebuilt twice":
                for _ in range(2):
                    self.rebuild(self.day())

    def next_shift(self) -> None:
        self.redis.delete(lease_key(ACCOUNT))
        self.lost, self.lease = self.lease, lease_of(self.redis)

    @rule()
    def redis_is_copied(self) -> None:
        if self.twin.knows and not self.twin.disturbed:
            keys = {key: self.redis.dump(key) or b"" for key in (LOG, STATE)}
            self.copy = self.mark, keys, deepcopy(self.twin)

    @rule(wish=wishes)
    def redis_comes_back_as_a_copy(self, wish: Wish) -> None:
        """A copy that is older is noticed by the next call; one that lacks nothing of this shift goes on.

        Such a copy lacks at most the late report of a shift before, and knows what the twin knew then.
        """
        mark, keys, twin = self.copy
        if not self.twin.knows or not keys:
            return
        for key, value in keys.items():
            self.redis.restore(key, 1_000_000, value, replace=True)
        if mark == self.mark:
            self.twin = deepcopy(twin)
        else:
            self.twin.forget()
        self.compare(wish)

    @rule(wish=wishes)
    def the_answer_of_a_take_is_lost(self, wish: Wish) -> None:
        """Redis may have granted something: the next call rebuilds, and nothing of it counts."""
        before, permits, knew = self.mark, len(self.permits), self.twin.knows and not self.twin.disturbed
        rights = len(self.rights)
        self.compare(wish)
        if knew and self.mark != before:
            self.mark = before
            self.twin.never_told([*self.permits[permits:], *self.rights[rights:]])
            del self.permits[permits:]
            del self.rights[rights:]
        self.compare(wish)

    @rule(wish=wishes, by=st.sampled_from([-HOUR, -6, 6, HOUR]))
    def redis_clock_jumps(self, wish: Wish, by: int) -> None:
        """The call is refused and changes nothing; it works again once the clock is right."""
        expected = Expected(earliest_ms=self.now - 5, latest_ms=self.now + 5)
        self.now += by
        assert self.answers_alike(replace(self.asked(wish), expected=expected)) == WrongClock(now_ms=self.now)
        self.now -= by

    def compare(
        self,
        wish: Wish,
        *,
        by_loser: bool = False,
        settled: Mapping[str, int] | None = None,
        returned: Sequence[str] = (),
    ) -> None:
        ask = self.asked(wish, by_loser=by_loser, settled=settled, returned=returned)
        if self.answers_alike(ask) == Forgotten():
            self.rebuild(ask.day)
            assert self.answers_alike(replace(ask, mark=self.mark)) != Forgotten()

    def asked(
        self,
        wish: Wish,
        *,
        by_loser: bool = False,
        settled: Mapping[str, int] | None = None,
        returned: Sequence[str] = (),
    ) -> Ask:
        held = (self.pace.per_minute, self.pace.per_hour, self.pace.per_day, *self.pace.long_caps.values())
        caps = [cap for cap in held if cap]
        return Ask(
            lease=self.lost if by_loser and self.lost else self.lease,
            action="message",
            pace=self.pace,
            day=self.day(wish.clock_ahead),
            want=len(wish.gaps),
            cost=min([wish.cost, *caps]),
            gaps_ms=wish.gaps,
            settled=settled or {},
            returned=returned,
            new_wanted=len(wish.gaps) if self.pace.counts_people else 0,
            mark=self.mark,
        )

    def answers_alike(self, ask: Ask) -> object:
        answer = self.limiter.take(ask)
        permits = [p for unit in answer.units for p in unit.permits] if isinstance(answer, Granted) else []
        rights = answer.rights if isinstance(answer, Granted) else ()
        held = ask.lease is self.lease
        heard = self.heard(answer)
        names = iter([*permits, *rights])
        assert heard == self.twin.take(ask, now=self.now, lease_held=held, names=names)
        self.permits += permits
        self.rights += rights
        return heard

    def heard(self, answer: object) -> object:
        """The answer without its mark, which the twin does not have and this machine remembers."""
        if isinstance(answer, Granted | Wait | Done):
            self.mark = answer.mark
            return replace(answer, mark="")
        return answer

    def rebuild(self, day: Day) -> None:
        memory = self.twin.memory(self.pace, day, self.now)
        answer = self.limiter.rebuild(self.lease, "message", memory)
        assert self.heard(answer) == self.twin.rebuild(self.pace, day)

    @invariant()
    def pages_show_the_same(self) -> None:
        day = self.day()
        answer = self.limiter.peek(ACCOUNT, "message", self.pace, day)
        assert answer == self.twin.peek(self.pace, day, self.now)

    @invariant()
    def the_batch_is_as_long(self) -> None:
        """Looked up in the state, since an answer shows it only when the batch is full."""
        if self.twin.knows:
            assert int(self.redis.hget(STATE, "batch") or 0) == len(self.twin.batch)

    def teardown(self) -> None:
        """Every key has a time to live."""
        assert all(self.redis.pttl(key) > 0 for key in self.redis.scan_iter())


def test_the_limiter_answers_as_its_twin_does(redis: Redis) -> None:
    TwinMachine.redis = redis
    run_state_machine_as_test(
        TwinMachine,
        settings=settings(
            max_examples=120,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


# The receiver


@dataclass(slots=True, kw_only=True)
class InFlight:
    seen: int
    answered: int


@dataclass(kw_only=True)
class Sending:
    """Pumps that send for one account, with what goes wrong, and the log of the receiver."""

    redis: Redis
    pace: Pace
    rng: random.Random
    now: int = START
    received: list[int] = field(default_factory=list)
    settled: list[tuple[int, int]] = field(default_factory=list)  # start and answer of all that was sent
    in_flight: dict[str, InFlight] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    mark: str = ""
    copy: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redis.flushall()
        self.lease = lease_of(self.redis)
        self.limiter = Limiter(
            self.redis,
            minute_ms=MINUTE,
            hour_ms=HOUR,
            horizon_ms=HORIZON,
            near_ms=NEAR,
            now_ms=lambda: self.now,
        )

    def day(self) -> Day:
        start = self.now // DAY * DAY
        return Day(start_ms=start, end_ms=start + DAY)

    def step(self) -> None:
        self.now += self.rng.choice([0, 1, 7, 7, 20, 20, 40, 90])
        chance = self.rng.random()
        if chance < 0.04:
            self.die()
        elif chance < 0.08:
            self.limiter.forget(ACCOUNT)
        elif chance < 0.14:
            self.copy = {key: value for key in (LOG, STATE) if (value := self.redis.dump(key))}
        elif chance < 0.22:
            for key, value in self.copy.items():
                self.redis.restore(key, 1_000_000, value, replace=True)
        elif chance < 0.26:
            self.mark = ""  # the answer was lost
        self.take(settled=self.answers())

    def answers(self) -> dict[str, int]:
        """Some of the answers that came are told to the limiter, at once or late."""
        told = {}
        for permit, sent in list(self.in_flight.items()):
            if sent.answered <= self.now and self.rng.random() < 0.7:
                told[permit] = sent.answered
                self.finish(permit, sent)
        return told

    def finish(self, permit: str, sent: InFlight) -> None:
        del self.in_flight[permit]
        self.received.append(sent.seen)
        self.settled.append((self.starts.pop(permit), sent.answered))

    def take(self, settled: dict[str, int]) -> None:
        cost = min([self.rng.randint(1, 3), *(c for c in (self.pace.per_minute, self.pace.per_hour) if c)])
        want = self.rng.randint(1, 6)
        ask = Ask(
            lease=self.lease,
            action="message",
            pace=self.pace,
            day=self.day(),
            want=want,
            cost=cost,
            gaps_ms=[self.rng.choice([0, 0, 3, 15]) for _ in range(want)],
            settled=settled,
            mark=self.mark,
        )
        answer = self.limiter.take(ask)
        if answer == Forgotten():
            self.rebuild()
            answer = self.limiter.take(replace(ask, mark=self.mark))
        if isinstance(answer, Granted | Wait):
            self.mark = answer.mark
        if isinstance(answer, Granted):
            for unit in answer.units:
                self.send(unit)

    def send(self, unit: Unit) -> None:
        if self.rng.random() < 0.15:
            answer = self.limiter.settle(self.lease, "message", {}, unit.permits, mark=self.mark)
            assert isinstance(answer, Done)
            self.mark = answer.mark
            return
        begun = unit.at_ms
        for permit in unit.permits:
            seen = begun + self.rng.choice([0, 0, 5, 30, 100])
            begun = seen + self.rng.choice([0, 0, 5, 30, 100])
            self.in_flight[permit] = InFlight(seen=seen, answered=begun)
            self.starts[permit] = unit.at_ms

    def die(self) -> None:
        """End the pump: messages that had not arrived never will; for the others the next pump does not know when."""
        for permit, sent in list(self.in_flight.items()):
            if sent.seen <= self.now:
                self.finish(permit, replace(sent, answered=self.now))
        self.in_flight.clear()
        self.starts.clear()
        self.redis.delete(lease_key(ACCOUNT))
        self.lease, self.mark = lease_of(self.redis), ""

    def rebuild(self) -> None:
        day = self.day()
        reach = self.limiter.reach_ms(self.pace)
        in_flight = {permit: self.starts[permit] for permit in self.in_flight}
        memory = Memory(
            day=day,
            day_used=len(in_flight) + sum(at >= day.start_ms for _, at in self.settled),
            reach_ms=reach,
            times_ms=[at for _, at in self.settled if at > self.now - reach],
            in_flight=in_flight,
            counts={
                span: Counter(at // bucket_width(span) for _, at in self.settled)
                for span in self.limiter.spans_ms(self.pace).values()
            },
            last_ms=max((start for start, _ in self.settled), default=0),
            free_at_ms=self.now,
        )
        answer = self.limiter.rebuild(self.lease, "message", memory)
        assert isinstance(answer, Done)
        self.mark = answer.mark


def most_in_any_window(times: Sequence[int], span: int) -> int:
    return max((sum(end - span < time <= end for time in times) for end in times), default=0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pace=paces, seed=st.integers(0, 2**32))
def test_the_receiver_never_sees_more_than_a_cap_in_any_window(redis: Redis, pace: Pace, seed: int) -> None:
    sending = Sending(redis=redis, pace=pace, rng=random.Random(seed))
    for _ in range(60):
        sending.step()
    received = [*sending.received, *(sent.seen for sent in sending.in_flight.values())]
    if pace.per_minute:
        assert most_in_any_window(received, MINUTE) <= pace.per_minute
    if pace.per_hour:
        assert most_in_any_window(received, HOUR) <= pace.per_hour
    if pace.per_day:
        assert max(Counter(time // DAY for time in received).values(), default=0) <= pace.per_day
    for name, span in sending.limiter.spans_ms(pace).items():
        assert most_in_any_window(received, span) <= pace.long_caps[name]


LONG_PACES = st.builds(
    Pace,
    per_minute=st.sampled_from([0, 8]),
    per_hour=st.just(0),
    per_day=st.sampled_from([0, 30]),
    batch_size=st.just(0),
    batch_pause_ms=st.just(0),
    per_24_hours=st.sampled_from([0, 20, 60]),
    per_7_days=st.sampled_from([0, 50, 100]),
    per_30_days=st.sampled_from([80, 200]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pace=LONG_PACES, seed=st.integers(0, 2**32))
def test_over_months_no_long_span_has_more_than_its_cap_and_little_less(
    redis: Redis, pace: Pace, seed: int
) -> None:
    """Restarts, lost and older states included; a span may be counted a 96th longer, and not more."""
    sending = Sending(redis=redis, pace=pace, rng=random.Random(seed))
    month = sending.limiter.spans_ms(pace)["per_30_days"]
    while sending.now < START + 3 * month:
        sending.now += sending.rng.choice([HOUR, 3 * HOUR, 10 * HOUR])
        sending.step()
    received = [*sending.received, *(sent.seen for sent in sending.in_flight.values())]
    for name, span in sending.limiter.spans_ms(pace).items():
        assert most_in_any_window(received, span) <= pace.long_caps[name]
    if not (pace.per_7_days or pace.per_24_hours or pace.per_day):
        assert most_in_any_window(received, month + 2 * month // 96) >= 0.9 * pace.per_30_days
