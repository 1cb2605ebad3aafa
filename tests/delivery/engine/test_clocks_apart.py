"""Clocks that disagree: nothing is granted, fired or woken by them, and all goes on once they agree."""

import asyncio
from datetime import timedelta
from time import time

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from activity.models import Attempt
from delivery import tasks
from delivery.engine import claims, clock_reading, permits, pump, tick, wakeups
from delivery.engine.batching import Batches
from delivery.engine.lease import lease_key
from delivery.engine.recording import Begun, Intent
from delivery.engine.workers import FindQueues
from delivery.limiter import Limiter, Wait
from delivery.models import Run, RunTarget
from delivery.sentences.account_state import whys
from delivery.states import TargetStatus, WaitReason
from reminders import tasks as reminder_tasks
from tests.delivery.engine.test_last_look import pumped, until
from tests.delivery.engine.test_tick import waiting
from tests.delivery.engine.test_workers import Consumer
from tests.delivery.shift_by_hand import HOUR_MS, Shift, epoch
from tests.delivery.stage import Stage, counted, serve
from tests.factories import ReminderFactory

GONE = "paceline:clocks:apart"


@pytest.fixture
def account(stage: Stage) -> Account:
    return stage.account(limits={"per_hour": 4, "gap_min": 0.001, "gap_max": 0.001})


def ahead(shift: Shift, redis: Redis, by_ms: int) -> None:
    """Let the limiter of a shift take another time for Redis' own: that of a server whose clock is off."""
    limiter = shift.permits._limiter
    shift.permits._limiter = Limiter(
        redis,
        minute_ms=limiter._minute_ms,
        hour_ms=limiter._hour_ms,
        horizon_ms=limiter._horizon_ms,
        now_ms=lambda: int(time() * 1000) + by_ms,
    )


def look() -> None:
    """Look at the clocks, as every worker does every few seconds."""
    consumer = Consumer()
    FindQueues(consumer).look(consumer)


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS, 7_000, -7_000])
def test_nothing_is_granted_by_a_clock_of_redis_that_is_off(
    account: Account, redis: Redis, by_ms: int
) -> None:
    shift = Shift(account)
    assert shift.send(4) == 4
    ahead(shift, redis, by_ms)
    answer = shift.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(answer, Wait)
    assert answer.reason is WaitReason.CLOCKS
    assert answer.detail.startswith("The clock of Redis is ")
    ahead(shift, redis, 0)
    assert shift.send(9) == 0, "the hour is used up by the right clock"


@pytest.mark.parametrize("by_ms", [3_000, -3_000])
def test_a_small_difference_stops_nothing_and_crosses_no_limit(
    account: Account, redis: Redis, by_ms: int
) -> None:
    shift = Shift(account)
    ahead(shift, redis, by_ms)
    assert shift.send(4) == 4
    assert shift.send(9) == 0


def test_a_clock_that_is_set_by_little_lets_no_message_leave_its_window_early(
    stage: Stage, redis: Redis, quick: Settings
) -> None:
    """The hour is six seconds here, and Redis' clock is set forward by four of them."""
    quick.MINUTE_SECONDS = 0.1
    shift = Shift(stage.account(limits={"per_hour": 4, "gap_min": 0.001, "gap_max": 0.001}))
    assert shift.send(4) == 4
    known = epoch(redis, shift.account)
    ahead(shift, redis, 4_000)
    answer = shift.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(answer, Wait)
    assert epoch(redis, shift.account) != known
    assert answer.until_ms - answer.now_ms > 5_000


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed by another account", "by a new process"])
def test_a_clock_that_is_set_by_little_between_two_shifts_lets_no_message_leave_its_window_early(
    stage: Stage, redis: Redis, quick: Settings, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    """The process knows already that the clock was set, or never read it before: the account's state does not say."""
    quick.MINUTE_SECONDS = 0.1
    limits = {"per_hour": 4, "gap_min": 0.001, "gap_max": 0.001}
    first = Shift(stage.account(limits=limits))
    assert first.send(4) == 4
    first.end()
    known = epoch(redis, first.account)
    for module in (clock_reading, permits):
        monkeypatch.setattr(module, "redis_clock", clock := clock_reading.RedisClock())
    if noticed:
        other = Shift(stage.account(limits=limits))
        other.send(1)
        ahead(other, redis, 4_000)
        other.send(1)
        assert clock.times_set == 1
    second = Shift(first.account)
    ahead(second, redis, 4_000)
    answer = second.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(answer, Wait)
    assert epoch(redis, first.account) != known
    assert answer.until_ms - answer.now_ms > 5_000


@pytest.mark.parametrize("hours", [1, -1])
def test_nothing_is_sent_by_a_worker_whose_clock_is_off_and_it_says_so(
    stage: Stage, redis: Redis, hours: int
) -> None:
    account = stage.account()
    stage.fire(account, to=3)
    with time_machine.travel(timezone.now() + timedelta(hours=hours)):
        pump.pump(account.pk)
    assert stage.received(account) == []
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.CLOCKS
    word = "ahead of" if hours > 0 else "behind"
    assert whys([account], now=timezone.now())[account.pk].sentence == (
        f"The clock of the worker is 60 minutes {word} the database. Nothing is sent until the clocks agree."
    )
    pump.pump(account.pk)
    assert len(stage.received(account)) == 3, "it goes on by itself"


@pytest.mark.parametrize("hours", [1, -1])
def test_permits_of_a_worker_are_not_used_once_its_clock_is_set(stage: Stage, hours: int) -> None:
    """It holds permits for the next seconds: a message would leave with a wrong time in the ledger."""
    account = stage.account(idempotent=False, limits={"gap_min": 0.2, "gap_max": 0.2})
    run = stage.fire(account, to=12)
    with pumped(account):
        until(lambda: len(stage.received(account)) >= 2)
        with time_machine.travel(timezone.now() + timedelta(hours=hours)):
            until(lambda: Account.objects.get(pk=account.pk).waiting_for == WaitReason.CLOCKS)
        left = len(stage.received(account))
    assert left < 12
    times = list(Attempt.objects.filter(run=run).values_list("at", flat=True))
    assert len(times) == left
    assert max(abs(timezone.now() - at) for at in times) < timedelta(minutes=10)
    begun = run.targets.filter(begun_at__isnull=False).exclude(status=TargetStatus.SENT)
    assert not begun.exists(), "nothing is in doubt"
    serve(run, account)
    assert counted(run) == {"sent": 12}


def test_a_worker_whose_clock_was_ahead_leaves_nothing_that_would_have_to_wait_for_it(stage: Stage) -> None:
    """It is killed right after its clock was set. Its account is looked after within a minute all the same."""
    account = stage.account()
    run = stage.fire(account, to=1)
    clock_reading.database_clock.read()
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        lease = wakeups.take_lease(account.pk)
        assert lease is not None
        [claimed] = claims.claim(
            run.pk, account.pk, fence=lease.fence, most=1, now=timezone.now() + timedelta(hours=1)
        )
        wish = Intent(target_id=claimed.target_id, part=0, fence=lease.fence, wished_at=timezone.now())
        assert asyncio.run(begun_by(wish)) == [None]
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at < timezone.now() + timedelta(minutes=1)
    assert not RunTarget.objects.filter(begun_at__isnull=False).exists()


async def begun_by(wish: Intent) -> list[Begun | None]:
    batches = Batches()
    try:
        return await batches.begin([wish])
    finally:
        await batches.close()


@pytest.mark.parametrize("hours", [1, -1])
def test_an_account_that_slept_when_the_clock_of_its_worker_was_set_says_so_once_it_is_due(
    stage: Stage, redis: Redis, hours: int
) -> None:
    """No tick works: a clock that is ahead finds it expired, and one that is behind does not obey it."""
    asleep, later = stage.account(), stage.account()
    stage.fire(asleep, later, to=4)
    Account.objects.update(waiting_for=WaitReason.PER_HOUR)
    Account.objects.filter(pk=asleep.pk).update(wake_at=timezone.now() - timedelta(seconds=15))
    Account.objects.filter(pk=later.pk).update(wake_at=timezone.now() + timedelta(seconds=60))
    redis.flushdb()
    with time_machine.travel(timezone.now() + timedelta(hours=hours)):
        look()
        assert (waiting(redis, asleep), waiting(redis, later)) == (1, 0)
        pump.pump(asleep.pk)
        redis.flushdb()
        look()
        assert waiting(redis, asleep) == 0, "it says what it waits for by now"
    asleep.refresh_from_db()
    assert asleep.waiting_for == WaitReason.CLOCKS
    assert stage.received(asleep) == []


def test_a_worker_whose_clock_is_right_leaves_late_accounts_to_the_tick(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    stage.fire(account, to=1)
    Account.objects.update(wake_at=timezone.now() - timedelta(seconds=15))
    redis.flushdb()
    look()
    assert waiting(redis, account) == 0


def test_accounts_that_sleep_until_a_time_of_a_wrong_clock_are_woken(
    stage: Stage, redis: Redis, settings: Settings
) -> None:
    account = stage.account()
    stage.fire(account, to=3)
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        pump.pump(account.pk)
    # As a shift leaves it that was under way when the clock was set.
    Account.objects.filter(pk=account.pk).update(wake_at=timezone.now() + timedelta(minutes=59))
    account.refresh_from_db()
    said = int(redis.get(GONE) or 0)
    tick.tick()
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at > timezone.now() + timedelta(minutes=50), "somebody complained a moment ago"
    redis.set(GONE, said - clock_reading.QUIET_MS)
    tick.tick()
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at < timezone.now() + timedelta(minutes=1)
    assert not redis.exists(GONE)


def test_nothing_is_woken_or_fired_by_a_clock_that_is_off(stage: Stage, redis: Redis) -> None:
    later = timezone.now() + timedelta(minutes=30)
    account = stage.account()
    Account.objects.update(wake_at=later)
    reminder = ReminderFactory.create(owner=stage.owner, scheduled=True, fire_at=later, next_fire_at=later)
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        tasks.tick()
        reminder_tasks.fire_due()
        tasks.judge_days()
        reminder_tasks.follow_up()
    account.refresh_from_db()
    assert account.wake_at == later
    assert not Run.objects.filter(reminder=reminder).exists()


def test_a_lease_that_a_clock_that_was_set_back_left_behind_is_nobodys(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    run = stage.fire(account, to=1)
    redis.set(lease_key(account.pk), "of a pump that is long gone", px=HOUR_MS)
    redis.set(f"paceline:{{{account.pk}}}:ahead", 1, px=HOUR_MS)
    pump.pump(account.pk)
    run.refresh_from_db()
    assert run.status == "success"
