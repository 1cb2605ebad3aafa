from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from redis import Redis

from delivery.clocks import Expected
from delivery.engine.lease import Lease, acquire, lease_key
from delivery.limiter import (
    Ask,
    Away,
    Day,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Limiter,
    Memory,
    Unit,
    Use,
    Wait,
    WrongClock,
)
from delivery.pacing import Pace
from delivery.states import WaitReason
from tests.delivery.private_redis import PrivateRedis

ACCOUNT = 17
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TODAY = Day(start_ms=20_000 * DAY, end_ms=20_001 * DAY)
TOMORROW = Day(start_ms=TODAY.end_ms, end_ms=TODAY.end_ms + DAY)
NOON = TODAY.start_ms + 12 * HOUR
UNLIMITED = Pace(per_minute=0, per_hour=0, per_day=0, batch_size=0, batch_pause_ms=0)


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def redis(server: PrivateRedis) -> Iterator[Redis]:
    with server.client() as client:
        client.flushall()
        yield client


def lease_of(redis: Redis, account_id: int = ACCOUNT) -> Lease:
    lease = acquire(redis, account_id, next_fence=lambda: 1)
    assert lease is not None
    return lease


@dataclass(kw_only=True)
class Pump:
    """One pump of one account, on a clock that the test moves; it knows the mark of the last answer."""

    redis: Redis
    now: int = NOON
    pace: Pace = UNLIMITED
    day: Day = TODAY
    limiter: Limiter = field(init=False)
    lease: Lease = field(init=False)
    mark: str = ""

    def __post_init__(self) -> None:
        self.limiter = Limiter(self.redis, now_ms=lambda: self.now)
        self.lease = lease_of(self.redis)

    def remember(self, **known: object) -> None:
        memory = Memory(day=self.day, day_used=0, reach_ms=HOUR)
        self.hear(self.limiter.rebuild(self.lease, "message", replace(memory, **known)))  # type: ignore[arg-type] # the test's own fields

    def hear(self, answer: object) -> None:
        assert isinstance(answer, Done), answer
        self.mark = answer.mark

    def note(self, settled: Mapping[str, int], returned: Sequence[str] = (), *, free_at_ms: int = 0) -> None:
        self.hear(
            self.limiter.settle(
                self.lease, "message", settled, returned, mark=self.mark, free_at_ms=free_at_ms
            )
        )

    def ask(
        self,
        *,
        want: int = 1,
        cost: int = 1,
        gap: int = 0,
        settled: Sequence[Unit] = (),
        returned: Sequence[Unit] = (),
        expected: Expected | None = None,
    ) -> Granted | Wait | WrongClock | LeaseLost | Forgotten | Away:
        """`settled` units were received right now."""
        answer = self.limiter.take(
            Ask(
                lease=self.lease,
                action="message",
                pace=self.pace,
                day=self.day,
                want=want,
                cost=cost,
                gaps_ms=[gap] * want,
                settled={permit: self.now for unit in settled for permit in unit.permits},
                returned=[permit for unit in returned for permit in unit.permits],
                mark=self.mark,
                expected=expected,
            )
        )
        if isinstance(answer, Granted | Wait):
            self.mark = answer.mark
        return answer

    def take(self, **wish: object) -> tuple[Unit, ...]:
        granted = self.ask(**wish)  # type: ignore[arg-type] # the same as of `ask`
        assert isinstance(granted, Granted), granted
        return granted.units

    def starts(self, **wish: object) -> list[int]:
        """Counted from noon."""
        return [unit.at_ms - NOON for unit in self.take(**wish)]

    def refusal(self, **wish: object) -> tuple[int, WaitReason]:
        wait = self.ask(**wish)  # type: ignore[arg-type] # the same as of `ask`
        assert isinstance(wait, Wait), wait
        assert wait.now_ms == self.now
        return wait.until_ms - NOON, wait.reason

    def settle(self, units: Sequence[Unit]) -> None:
        self.note({permit: self.now for unit in units for permit in unit.permits})

    def give_back(self, units: Sequence[Unit]) -> None:
        self.note({}, [permit for unit in units for permit in unit.permits])

    def use(self) -> Use:
        use = self.limiter.peek(ACCOUNT, "message", self.pace, self.day)
        assert isinstance(use, Use), use
        return use


@pytest.fixture
def pump(redis: Redis) -> Pump:
    pump = Pump(redis=redis)
    pump.remember()
    return pump


# The gap and the horizon


def test_units_follow_each_other_by_their_gaps_as_far_as_the_horizon(pump: Pump) -> None:
    units = pump.take(want=9, cost=2, gap=1_500)
    assert [unit.at_ms - NOON for unit in units] == [0, 1_500, 3_000, 4_500, 6_000, 7_500, 9_000]
    permits = [permit for unit in units for permit in unit.permits]
    assert len(set(permits)) == len(permits) == 14


def test_a_unit_beyond_the_horizon_has_to_wait_for_its_gap(pump: Pump) -> None:
    pump.take(gap=10_001)
    assert pump.refusal() == (10_001, WaitReason.GAP)
    pump.now += 1
    assert pump.starts() == [10_001]


def test_no_unit_is_granted_long_after_the_one_before_however_far_the_horizon_is(pump: Pump) -> None:
    pump.limiter = Limiter(pump.redis, now_ms=lambda: pump.now, horizon_ms=MINUTE, near_ms=10_000)
    assert pump.starts(want=9, gap=9_000) == [0, 9_000, 18_000, 27_000, 36_000, 45_000, 54_000]
    pump.now += MINUTE
    pump.pace = replace(UNLIMITED, batch_size=2, batch_pause_ms=20_000)
    assert pump.starts(want=9, gap=9_000) == [63_000, 72_000]


def test_no_downtime_is_credited(pump: Pump) -> None:
    pump.take(gap=5_000)
    pump.now += HOUR
    assert pump.starts(want=3, gap=5_000) == [HOUR, HOUR + 5_000, HOUR + 10_000]


def test_actions_and_accounts_do_not_count_against_each_other(pump: Pump) -> None:
    pump.take(gap=MINUTE)
    email = Memory(day=TODAY, day_used=0, reach_ms=0)
    done = pump.limiter.rebuild(pump.lease, "email", email)
    assert isinstance(done, Done)
    ask = Ask(
        lease=pump.lease,
        action="email",
        pace=UNLIMITED,
        day=TODAY,
        want=1,
        cost=1,
        gaps_ms=[0],
        mark=done.mark,
    )
    assert isinstance(pump.limiter.take(ask), Granted)


# The caps


def test_a_minute_slides_and_never_holds_more_than_its_cap(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=3)
    pump.settle(pump.take(gap=1_000))
    pump.now += 1_000
    pump.settle(pump.take(want=2))
    assert pump.refusal() == (MINUTE, WaitReason.PER_MINUTE)
    pump.now = NOON + MINUTE - 1
    assert pump.starts(want=9) == [MINUTE, MINUTE + 1_000, MINUTE + 1_000]


def test_an_hour_slides_and_never_holds_more_than_its_cap(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=2, per_hour=3)
    pump.settle(pump.take(want=2))
    pump.now += MINUTE
    pump.settle(pump.take())
    assert pump.refusal() == (HOUR, WaitReason.PER_HOUR)
    pump.now += HOUR - MINUTE
    assert pump.starts(want=2) == [HOUR, HOUR]


def test_a_unit_waits_until_all_its_messages_fit(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=3)
    pump.settle(pump.take(cost=1))
    pump.now += 1_000
    pump.settle(pump.take(cost=1))
    assert pump.refusal(cost=3) == (MINUTE + 1_000, WaitReason.PER_MINUTE)
    assert pump.refusal(cost=2) == (MINUTE, WaitReason.PER_MINUTE)


def test_what_is_in_flight_counts_however_old_it_is(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=1)
    in_flight = pump.take()
    pump.now += 10 * MINUTE
    assert pump.refusal() == (10 * MINUTE + 1_000, WaitReason.PER_MINUTE), "to be asked again in a second"
    assert pump.refusal(settled=in_flight) == (11 * MINUTE, WaitReason.PER_MINUTE)


def test_a_permit_settled_before_its_start_counts_from_its_start(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=2)
    _, second = pump.take(want=2, gap=5_000)
    pump.settle([second])
    assert pump.refusal(cost=2)[0] == MINUTE
    pump.now += 70_000
    pump.settle([second])
    assert pump.use().minute == 2, "a later time takes the place of an earlier one"


def test_a_day_that_is_full_waits_for_the_next(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_day=3)
    pump.settle(pump.take(want=3))
    assert pump.refusal() == (12 * HOUR, WaitReason.PER_DAY)
    pump.now, pump.day = TOMORROW.start_ms, TOMORROW
    assert len(pump.take(want=5)) == 3


def test_a_new_day_begins_with_what_may_still_arrive_in_it(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_day=4)
    pump.now = TODAY.end_ms - 10
    early, late, open_ = pump.take(want=3)
    pump.settle([early])
    pump.now, pump.day = TOMORROW.start_ms, TOMORROW
    pump.settle([late])
    assert pump.use().day == 2
    assert len(pump.take(want=4)) == 2
    pump.give_back([open_])
    assert pump.use().day == 3


def test_no_unit_starts_in_the_next_day(pump: Pump) -> None:
    pump.now = TODAY.end_ms - 100
    assert len(pump.take(want=3, gap=60)) == 2
    assert pump.refusal() == (12 * HOUR, WaitReason.GAP)
    pump.day = TOMORROW
    assert pump.starts() == [12 * HOUR + 20]


def test_the_wait_of_a_worker_whose_clock_is_behind_is_short_but_not_over(pump: Pump) -> None:
    pump.now = TODAY.end_ms + 5
    assert pump.refusal() == (12 * HOUR + 1_005, WaitReason.GAP)


def test_a_worker_whose_clock_is_behind_does_not_trim_what_the_new_day_counts(pump: Pump) -> None:
    units = pump.take()
    pump.now = TODAY.end_ms + 5
    pump.settle(units)
    pump.refusal()
    pump.day = TOMORROW
    pump.give_back(pump.take())
    assert pump.use().day == 1


def test_a_worker_whose_clock_is_ahead_gets_nothing_before_its_day(pump: Pump) -> None:
    pump.now, pump.day = TODAY.end_ms - 5, TOMORROW
    assert pump.starts() == [12 * HOUR]


@pytest.mark.parametrize("limit", ["per_minute", "per_hour", "per_day"])
def test_a_unit_that_no_waiting_could_grant_is_a_mistake(pump: Pump, limit: str) -> None:
    pump.pace = replace(UNLIMITED, **{limit: 2})
    with pytest.raises(ValueError, match=limit):
        pump.ask(cost=3)


# Returned permits


def test_a_returned_unit_leaves_no_trace(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=3, per_hour=5, per_day=9, batch_size=3, batch_pause_ms=MINUTE)
    before = pump.use()
    pump.give_back(pump.take(want=3, gap=2_000))
    assert pump.use() == replace(before, free_at_ms=NOON)
    assert pump.starts(want=3, gap=2_000) == [0, 2_000, 4_000]


def test_the_time_of_the_last_units_is_free_again(pump: Pump) -> None:
    _, *rest = pump.take(want=4, gap=2_000)
    assert pump.starts(returned=rest) == [2_000]


def test_the_time_of_a_unit_before_others_stays_taken(pump: Pump) -> None:
    first, second, third = pump.take(want=3, gap=2_000)
    pump.settle([third])
    pump.give_back([first, second])
    assert pump.use().free_at_ms == NOON + 6_000


def test_the_gap_after_a_unit_that_began_late_counts_from_then_on(pump: Pump) -> None:
    first, second = pump.take(want=2, gap=2_000)
    pump.note({first.permits[0]: NOON}, second.permits, free_at_ms=NOON + 3_500)
    assert pump.use().free_at_ms == NOON + 3_500
    assert pump.starts(want=1) == [3_500]


def test_the_gap_after_a_unit_of_which_a_part_was_sent_stays(pump: Pump) -> None:
    (unit,) = pump.take(cost=2, gap=2_000)
    sent, unused = unit.permits
    pump.note({sent: NOON}, [unused])
    assert pump.use() == Use(
        minute=None, hour=None, day=1, planned=0, free_at_ms=NOON + 2_000, held_until_ms=0
    )


def test_a_settled_permit_cannot_be_returned(pump: Pump) -> None:
    units = pump.take()
    pump.settle(units)
    pump.give_back(units)
    assert pump.use().day == 1


# Batches


def test_after_a_batch_there_is_a_pause_from_its_last_message(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, batch_size=3, batch_pause_ms=30_000)
    assert pump.starts(want=5, gap=1_000) == [0, 1_000, 2_000]
    assert pump.refusal() == (32_000, WaitReason.BATCH_PAUSE)
    pump.now += 25_000
    assert pump.starts(want=5, gap=1_000) == [32_000, 33_000, 34_000]


def test_the_pause_counts_from_the_last_message_as_it_left_and_not_as_it_was_planned(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, batch_size=3, batch_pause_ms=30_000)
    units = pump.take(want=3, gap=1_000)
    pump.now += 20_000  # something held them up
    pump.settle(units)
    assert pump.refusal() == (50_000, WaitReason.BATCH_PAUSE)


def test_an_idle_time_as_long_as_the_pause_begins_a_new_batch(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, batch_size=3, batch_pause_ms=30_000)
    pump.take(want=2)
    pump.now += 30_000
    assert len(pump.take(want=5)) == 3


def test_a_unit_is_not_torn_apart_by_a_pause(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, batch_size=3, batch_pause_ms=5_000)
    assert pump.starts(want=3, cost=2, gap=1_000) == [0, 5_000, 10_000]


def test_a_permit_of_an_earlier_batch_that_comes_back_does_not_make_the_batch_longer(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, batch_size=2, batch_pause_ms=5_000)
    first, _, third = pump.take(want=3, gap=0)
    assert third.at_ms == NOON + 5_000
    assert pump.starts(want=3, returned=[first]) == [5_000, 10_000, 10_000]


def test_what_comes_back_from_before_there_were_batches_does_not_make_the_first_longer(pump: Pump) -> None:
    _, *unused = pump.take(want=4)
    pump.pace = replace(UNLIMITED, batch_size=2, batch_pause_ms=5_000)
    pump.give_back(unused)
    assert pump.starts(want=3) == [0, 0, 5_000]


# Holding


def test_nothing_is_granted_while_held_and_the_later_hold_stays(pump: Pump) -> None:
    pump.hear(pump.limiter.hold(pump.lease, "message", NOON + MINUTE, mark=pump.mark))
    pump.hear(pump.limiter.hold(pump.lease, "message", NOON + 20_000, mark=pump.mark))
    assert pump.refusal() == (MINUTE, WaitReason.SLOWED)
    pump.now += 55_000
    assert pump.starts() == [MINUTE]


# Leases


def test_only_the_holder_of_the_lease_gets_permits(pump: Pump, redis: Redis) -> None:
    units = pump.take()
    old = pump.lease
    redis.delete(lease_key(ACCOUNT))
    pump.lease = lease_of(redis)
    assert pump.take()
    pump.lease = old
    assert pump.ask(settled=units) == LeaseLost()
    assert pump.limiter.settle(old, "message", {}, mark=pump.mark) == LeaseLost()
    assert pump.limiter.hold(old, "message", NOON, mark=pump.mark) == LeaseLost()
    memory = Memory(day=TODAY, day_used=0, reach_ms=0)
    assert pump.limiter.rebuild(old, "message", memory) == LeaseLost()
    assert pump.use().day == 2


def test_a_pump_that_lost_its_lease_still_settles_and_returns(pump: Pump, redis: Redis) -> None:
    pump.pace = replace(UNLIMITED, per_minute=3)
    settled, returned, _ = pump.take(want=3)
    redis.delete(lease_key(ACCOUNT))
    assert pump.ask(settled=[settled], returned=[returned]) == LeaseLost()
    assert pump.use().day == 2
    pump.now += MINUTE
    assert pump.use().minute == 1


def test_asking_and_settling_renew_the_lease(pump: Pump, redis: Redis) -> None:
    for call in (pump.take, lambda: pump.settle([])):
        redis.pexpire(lease_key(ACCOUNT), 1_000)
        call()
        assert redis.pttl(lease_key(ACCOUNT)) > 1_000


# Marks


def test_a_state_is_believed_only_with_the_mark_of_the_last_answer(pump: Pump) -> None:
    marks = [pump.mark]
    units = pump.take()
    marks.append(pump.mark)
    pump.settle(units)
    marks.append(pump.mark)
    pump.hear(pump.limiter.hold(pump.lease, "message", NOON, mark=pump.mark))
    assert len({*marks, pump.mark}) == 4, "each call that changes something gives a new one"
    pump.mark = marks[-1]
    assert pump.ask() == Forgotten()
    assert pump.limiter.peek(ACCOUNT, "message", UNLIMITED, TODAY) == Forgotten(), (
        "nobody believes it any more"
    )


def test_a_call_whose_answer_was_lost_is_no_permission(pump: Pump) -> None:
    before = pump.mark
    pump.take()
    pump.mark = before
    assert pump.ask() == Forgotten()


def test_the_next_shift_goes_on_with_the_mark_of_the_last(pump: Pump, redis: Redis) -> None:
    pump.settle(pump.take())
    redis.delete(lease_key(ACCOUNT))
    pump.lease = lease_of(redis)
    pump.take()
    assert pump.use().day == 2


def test_a_shift_that_does_not_know_the_mark_counts_by_the_ledger(pump: Pump, redis: Redis) -> None:
    pump.take()
    redis.delete(lease_key(ACCOUNT))
    pump.lease, pump.mark = lease_of(redis), ""
    assert pump.ask() == Forgotten()


def test_what_a_stale_pump_reports_makes_the_holder_count_by_the_ledger(pump: Pump, redis: Redis) -> None:
    units = pump.take()
    stale, mark = pump.lease, pump.mark
    redis.delete(lease_key(ACCOUNT))
    pump.lease = lease_of(redis)
    assert pump.limiter.settle(stale, "message", {}, mark=mark) == LeaseLost()
    pump.take()
    late = {permit: NOON + MINUTE for unit in units for permit in unit.permits}
    assert pump.limiter.settle(stale, "message", late, mark=mark) == LeaseLost()
    assert pump.ask() == Forgotten()


def test_an_older_copy_of_the_same_server_is_not_believed(pump: Pump, redis: Redis) -> None:
    """A proxy may switch to a backup and back: the same data without the last seconds."""
    keys = [f"paceline:{{{ACCOUNT}}}:message:{name}" for name in ("log", "state")]
    pump.pace = replace(UNLIMITED, per_minute=2)
    pump.take()
    copy = {key: redis.dump(key) or b"" for key in keys}
    pump.take()
    newer = {key: redis.dump(key) or b"" for key in keys}
    for key, value in copy.items():
        redis.restore(key, 0, value, replace=True)
    assert pump.ask() == Forgotten()
    pump.remember(times_ms=[NOON, NOON])
    assert pump.refusal()[1] is WaitReason.PER_MINUTE
    for key, value in newer.items():
        redis.restore(key, 0, value, replace=True)
    assert pump.ask() == Forgotten(), "the first one comes back, and does not know the copy's time"


# Clocks


@pytest.mark.parametrize(
    ("ahead", "granted"), [(-5_001, False), (-5_000, True), (5_000, True), (5_001, False)]
)
def test_a_clock_that_is_off_grants_and_changes_nothing(pump: Pump, ahead: int, granted: bool) -> None:
    units = pump.take()
    use = pump.use()
    expected = Expected(earliest_ms=NOON - 5_000, latest_ms=NOON + 5_000)
    pump.now += ahead
    answer = pump.ask(expected=expected, settled=units)
    assert isinstance(answer, Granted) == granted
    if not granted:
        assert answer == WrongClock(now_ms=pump.now)
        pump.now = NOON
        assert pump.use() == use
        pump.take(expected=expected, settled=units)


def test_a_pump_that_lost_its_lease_hears_that_before_anything_of_clocks(pump: Pump, redis: Redis) -> None:
    redis.delete(lease_key(ACCOUNT))
    assert pump.ask(expected=Expected(earliest_ms=0, latest_ms=0)) == LeaseLost()


# Forgetting


def test_a_limiter_without_a_state_asks_to_be_rebuilt(redis: Redis) -> None:
    pump = Pump(redis=redis)
    assert pump.ask() == Forgotten()
    assert pump.limiter.settle(pump.lease, "message", {"some": NOON}, mark="some.1") == Forgotten()
    assert pump.limiter.hold(pump.lease, "message", NOON, mark="some.1") == Forgotten()
    assert pump.limiter.peek(ACCOUNT, "message", UNLIMITED, TODAY) == Forgotten()
    assert set(redis.scan_iter()) == {lease_key(ACCOUNT).encode()}


def test_a_rebuilt_limiter_holds_to_all_that_the_ledger_knows(redis: Redis) -> None:
    pump = Pump(redis=redis, pace=replace(UNLIMITED, per_minute=5, per_hour=6, per_day=9, batch_size=75))
    pump.remember(
        day_used=7,
        times_ms=[NOON - 20 * MINUTE, NOON - MINUTE, NOON - 1],
        in_flight={"held by the pump": NOON - 10},
        free_at_ms=NOON + 3,
        held_until_ms=NOON + 2,
    )
    assert pump.use() == Use(minute=2, hour=4, day=7, planned=0, free_at_ms=NOON + 3, held_until_ms=NOON + 2)
    assert pump.starts(want=9) == [3, 3]
    assert pump.refusal()[1] is WaitReason.PER_DAY
    pump.note({}, ["held by the pump"])
    assert pump.starts(want=9) == [3]


def test_a_rebuilt_limiter_keeps_the_place_in_the_batch(redis: Redis) -> None:
    pump = Pump(redis=redis, pace=replace(UNLIMITED, batch_size=75, batch_pause_ms=30_000))
    pump.remember(batch=74, last_ms=NOON - 10_000, in_flight={"held by the pump": NOON - 10})
    pump.note({}, ["held by the pump"])
    assert pump.starts(want=2) == [0]
    assert pump.refusal() == (30_000, WaitReason.BATCH_PAUSE)


def test_rebuilding_takes_the_place_of_a_state(pump: Pump) -> None:
    pump.take()
    pump.remember(day_used=5)
    assert pump.use().day == 5


def test_forgetting_an_account_drops_all_but_its_lease(pump: Pump, redis: Redis) -> None:
    pump.take()
    pump.limiter.rebuild(pump.lease, "inmail", Memory(day=TODAY, day_used=0, reach_ms=0))
    assert pump.limiter.forget(ACCOUNT) == Done()
    assert set(redis.scan_iter()) == {lease_key(ACCOUNT).encode()}


def test_a_cap_that_looks_further_back_than_the_log_goes_needs_the_ledger(pump: Pump) -> None:
    pump.pace = replace(UNLIMITED, per_minute=5)
    pump.take()
    pump.pace = replace(UNLIMITED, per_hour=5)
    assert pump.limiter.peek(ACCOUNT, "message", pump.pace, TODAY) == Forgotten()
    assert pump.ask() == Forgotten()
    pump.remember()
    pump.take()


def test_a_day_that_overlaps_the_counted_one_needs_the_ledger(pump: Pump) -> None:
    pump.take()
    pump.day = Day(start_ms=TODAY.start_ms + HOUR, end_ms=TODAY.end_ms + HOUR)
    assert pump.ask() == Forgotten()
    pump.remember()
    pump.take()


def test_a_log_that_was_lost_alone_is_noticed(pump: Pump, redis: Redis) -> None:
    pump.take()
    redis.delete(f"paceline:{{{ACCOUNT}}}:message:log")
    assert pump.ask() == Forgotten()


def test_a_permit_of_a_forgotten_state_means_nothing_to_the_next(pump: Pump) -> None:
    units = pump.take()
    pump.limiter.forget(ACCOUNT)
    pump.remember()
    pump.take()
    pump.give_back(units)
    pump.settle(units)
    assert pump.use().day == 1


def test_only_what_the_caps_need_is_kept(pump: Pump, redis: Redis) -> None:
    def kept(**caps: int) -> int:
        """Messages of one a second for a hundred seconds, without the member that is always there."""
        pump.limiter.forget(ACCOUNT)
        pump.pace = replace(UNLIMITED, **caps)
        pump.remember(times_ms=[pump.now - 1_000 * age for age in range(100)])
        pump.ask(returned=pump.take())
        return int(redis.zcard(f"paceline:{{{ACCOUNT}}}:message:log")) - 2

    assert kept(per_hour=200, per_minute=100) == 100
    assert kept(per_minute=100) == 60
    assert kept(per_day=100) == 0


# Redis


def test_every_key_has_a_time_to_live(pump: Pump, redis: Redis) -> None:
    pump.settle(pump.take())
    pump.limiter.hold(pump.lease, "message", NOON, mark=pump.mark)
    keys = list(redis.scan_iter())
    assert len(keys) == 3
    assert all(redis.pttl(key) > 0 for key in keys)


def test_the_keys_of_an_account_share_a_slot_of_a_cluster(pump: Pump, redis: Redis) -> None:
    pump.take()
    assert all(b":{17}:" in key for key in redis.scan_iter())


def test_the_script_survives_a_flush(pump: Pump, redis: Redis) -> None:
    redis.script_flush()
    assert pump.take()


def test_the_clock_is_that_of_redis_unless_another_is_given(redis: Redis) -> None:
    def redis_ms() -> int:
        seconds, micros = redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    pump = Pump(redis=redis)
    before = redis_ms()
    pump.day = Day(start_ms=before - HOUR, end_ms=before + HOUR)
    pump.limiter = Limiter(redis)
    pump.remember()
    granted = pump.ask()
    assert isinstance(granted, Granted)
    assert before <= granted.now_ms <= redis_ms()
    assert granted.units[0].at_ms == granted.now_ms


def test_answers_are_the_same_for_a_client_that_decodes(server: PrivateRedis, pump: Pump) -> None:
    with server.client(decode_responses=True) as redis:
        pump.limiter = Limiter(redis, now_ms=lambda: pump.now)
        (unit,) = pump.take()
        assert isinstance(unit.permits[0], str)


def test_a_redis_that_is_away_grants_nothing_and_says_so() -> None:
    with PrivateRedis() as server, server.client() as redis:
        pump = Pump(redis=redis)
        pump.remember()
        server.stop()
        answers = [
            pump.ask(),
            pump.limiter.settle(pump.lease, "message", {}, mark=pump.mark),
            pump.limiter.hold(pump.lease, "message", NOON, mark=pump.mark),
            pump.limiter.rebuild(pump.lease, "message", Memory(day=TODAY, day_used=0, reach_ms=0)),
            pump.limiter.peek(ACCOUNT, "message", UNLIMITED, TODAY),
            pump.limiter.forget(ACCOUNT),
        ]
        assert all(isinstance(answer, Away) and answer.reason for answer in answers)
        server.start()
        assert pump.ask() == LeaseLost(), "the lease went with everything else"
        pump.lease = lease_of(redis)
        assert pump.ask() == Forgotten()


@pytest.mark.parametrize("lost", [True, False])
def test_a_redis_that_was_started_again_is_believed_only_if_it_lost_nothing(lost: bool) -> None:
    with PrivateRedis() as server, server.client() as redis:
        pump = Pump(redis=redis, pace=replace(UNLIMITED, per_minute=2))
        pump.limiter = Limiter(redis, lease_ttl_ms=HOUR, now_ms=lambda: pump.now)
        pump.remember()
        pump.take()
        redis.save()
        if lost:
            pump.take()
        server.stop()
        server.start()
        assert redis.exists(lease_key(ACCOUNT))
        assert (pump.ask() == Forgotten()) == lost


# Mistakes


@pytest.mark.parametrize(
    "mistake",
    [
        {"want": 0, "gaps_ms": []},
        {"cost": 0},
        {"gaps_ms": [1, 2]},
        {"gaps_ms": [-1]},
        {"day": Day(start_ms=5, end_ms=5)},
        {"action": "fax"},
    ],
)
def test_a_question_that_means_nothing_is_refused(pump: Pump, mistake: dict[str, object]) -> None:
    ask = Ask(lease=pump.lease, action="message", pace=UNLIMITED, day=TODAY, want=1, cost=1, gaps_ms=[0])
    with pytest.raises(ValueError, match=r".+"):
        pump.limiter.take(replace(ask, **mistake))  # type: ignore[arg-type] # the test's own fields


def test_a_state_that_an_older_release_changed_is_rebuilt(redis: Redis) -> None:
    """It counts neither long spans nor new people, and leaves what it found of them."""
    pump = Pump(redis=redis, pace=replace(UNLIMITED, per_24_hours=10))
    pump.remember(counts={24 * HOUR: {}})
    pump.settle(pump.take())
    epoch, calls = pump.mark.split(".")
    redis.hincrby(f"paceline:{{{ACCOUNT}}}:message:state", "calls", 1)
    pump.mark = f"{epoch}.{int(calls) + 1}"
    assert isinstance(pump.limiter.peek(ACCOUNT, "message", pump.pace, pump.day), Forgotten)
    assert isinstance(pump.ask(), Forgotten)
