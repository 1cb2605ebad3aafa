"""The states of the limiter that a shift believes (SPEC P8)."""

from datetime import UTC, datetime
from threading import Thread

import pytest
from django.db import OperationalError, connection
from redis import Redis

from accounts.models import Account
from delivery.engine import clock_reading, wakeups
from delivery.engine.lease import lease_key
from delivery.engine.wakeups import Rest
from delivery.limiter import Granted, LeaseLost
from tests.delivery.shift_by_hand import Shift, copied, epoch, lease_of, restored
from tests.delivery.stage import Stage
from tests.factories import AttemptFactory


@pytest.fixture
def account(stage: Stage) -> Account:
    return stage.account(limits={"per_hour": 4, "gap_min": 0.001, "gap_max": 0.001})


# Older data


def test_a_shift_believes_what_the_last_one_left(account: Account, redis: Redis) -> None:
    first = Shift(account)
    assert first.send(2) == 2
    first.end()
    known = epoch(redis, account)
    second = Shift(account)
    assert second.send(9) == 2
    second.end()
    assert epoch(redis, account) == known, "nothing was rebuilt"


def test_an_older_redis_between_two_shifts_is_not_believed(account: Account, redis: Redis) -> None:
    first = Shift(account)
    assert first.send(1) == 1
    first.end()
    older = copied(redis, account)
    second = Shift(account)
    assert second.send(3) == 3
    second.end()
    newer = copied(redis, account)
    restored(redis, older)
    third = Shift(account)
    assert third.send(9) == 0, "the hour is used up, whatever this Redis remembers"
    third.end()
    restored(redis, newer)
    assert Shift(account).send(9) == 0


def test_an_older_redis_in_the_middle_of_a_shift_is_not_believed(account: Account, redis: Redis) -> None:
    """The lease is the same: a replica took over that misses the last seconds."""
    shift = Shift(account)
    assert shift.send(1) == 1
    shift.permits.report()
    older = copied(redis, account)
    assert shift.send(3) == 3
    restored(redis, older)
    assert shift.send(9) == 0


def test_a_shift_that_died_leaves_nothing_to_believe(account: Account, redis: Redis) -> None:
    first = Shift(account)
    assert first.send(2) == 2
    known = epoch(redis, account)
    first.die(redis)
    second = Shift(account)
    assert second.send(9) == 2, "what the dead one had in hand and did not use is free again"
    assert epoch(redis, account) != known


def test_two_servers_at_once_grant_no_more_than_one(account: Account, redis: Redis) -> None:
    """Half of the workers spoke to the old Redis: its pump still holds a lease there when all come back to it."""
    stale = Shift(account)
    assert stale.send(1) == 1
    old = copied(redis, account) | {lease_key(account.pk): redis.dump(lease_key(account.pk)) or b""}
    redis.flushdb()
    current = Shift(account)
    assert current.send(2) == 2
    restored(redis, old)
    assert isinstance(current.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0), LeaseLost)
    current.end()
    stale.end()
    redis.delete(lease_key(account.pk))
    assert Shift(account).send(9) == 1


def test_a_stale_pump_of_the_same_process_takes_nothing_away(account: Account, redis: Redis) -> None:
    stale = Shift(account)
    granted = stale.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(granted, Granted)
    stale.die(redis)
    current = Shift(account)
    assert current.send(3) == 3
    stale.permits.give_back(permit for unit in granted.units for permit in unit.permits)
    stale.end()
    assert current.send(9) == 1
    current.end()
    assert Shift(account).send(9) == 0


def test_what_a_stale_pump_lands_late_is_counted_by_when_it_landed(account: Account, redis: Redis) -> None:
    """It knows that it lost its lease, and its message was under way for longer than the next pump could know."""
    stale = Shift(account)
    granted = stale.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(granted, Granted)
    stale.die(redis)
    current = Shift(account)
    assert current.send(1) == 1
    lost = stale.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(lost, LeaseLost)
    AttemptFactory.create(test_send=True, account=account, at=datetime.now(UTC), took_ms=0)
    stale.permits.settle(granted.units[0].permits[0])
    stale.end()
    assert current.send(9) == 2


def test_what_was_to_be_told_survives_a_database_that_is_away(account: Account) -> None:
    """The clocks could not be compared: the next call tells the limiter, or the permit would stay open for ever."""
    shift = Shift(account)
    granted = shift.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(granted, Granted)
    shift.permits.give_back(permit for unit in granted.units for permit in unit.permits)
    clock_reading.database_clock._clock = None  # it is read anew
    with connection.execute_wrapper(_away), pytest.raises(OperationalError):
        shift.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert shift.send(9) == 4


def _away(*_: object) -> None:
    raise OperationalError("The database is away.")


def test_a_take_whose_answer_was_lost_is_no_permission(account: Account, redis: Redis) -> None:
    """Redis did as it was asked, and the answer never came: what it granted is neither used nor counted."""
    shift = Shift(account)
    assert shift.send(1) == 1
    before = shift.permits._mark
    shift.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    shift.permits._mark = before
    assert shift.send(9) == 3
    assert shift.send(9) == 0


def test_asking_and_holding_at_once_do_not_disturb_each_other(account: Account, redis: Redis) -> None:
    shift = Shift(account)
    shift.send(1)
    known = epoch(redis, account)
    threads = [Thread(target=shift.permits.hold, args=(0.0,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    shift.send(1)
    for thread in threads:
        thread.join()
    assert shift.send(1) == 1
    assert epoch(redis, account) == known


def test_the_marks_of_other_actions_outlive_a_shift_that_did_not_need_them(
    account: Account, redis: Redis
) -> None:
    first = Shift(account)
    first.send(1)
    first.end()
    second = lease_of(account)
    wakeups.end_shift(second, Rest.soon())
    known = epoch(redis, account)
    third = Shift(account)
    third.send(1)
    assert epoch(redis, account) == known
