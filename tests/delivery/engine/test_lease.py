from collections.abc import Iterator
from itertools import count

import pytest
from redis import Redis

from delivery.engine.lease import (
    AHEAD_MS,
    TTL_MS,
    Lease,
    acquire,
    ahead_key,
    lease_key,
    release,
    renew,
    waited_for,
)
from tests.delivery.private_redis import PrivateRedis

ACCOUNT = 17


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def redis(server: PrivateRedis) -> Iterator[Redis]:
    with server.client() as client:
        client.flushall()
        yield client


def holder(redis: Redis, *, fence: int = 1) -> Lease:
    lease = acquire(redis, ACCOUNT, next_fence=lambda: fence)
    assert lease is not None
    return lease


def test_one_pump_holds_an_account_and_the_next_is_turned_away(redis: Redis) -> None:
    fences = count(1)
    first = acquire(redis, ACCOUNT, next_fence=lambda: next(fences))
    second = acquire(redis, ACCOUNT, next_fence=lambda: next(fences))
    assert first is not None
    assert (first.account_id, first.fence) == (ACCOUNT, 1)
    assert second is None
    assert next(fences) == 2, "a fencing number is made only for a pump that won the key"


def test_accounts_do_not_wait_for_each_other(redis: Redis) -> None:
    assert acquire(redis, 1, next_fence=lambda: 1)
    assert acquire(redis, 2, next_fence=lambda: 1)


def test_a_released_account_is_free_for_the_next_pump(redis: Redis) -> None:
    first = holder(redis)
    release(redis, first)
    second = holder(redis, fence=2)
    assert second.token != first.token


def test_releasing_a_lease_that_was_lost_leaves_the_holder_alone(redis: Redis) -> None:
    late = holder(redis)
    redis.delete(lease_key(ACCOUNT))
    current = holder(redis, fence=2)
    release(redis, late)
    assert renew(redis, [late]) == [late]
    assert renew(redis, [current]) == []


def test_a_lease_runs_out_by_itself_and_is_renewed_for_as_long_again(redis: Redis) -> None:
    lease = acquire(redis, ACCOUNT, ttl_ms=5_000, next_fence=lambda: 1)
    assert lease is not None
    assert 0 < redis.pttl(lease_key(ACCOUNT)) <= 5_000
    assert renew(redis, [lease]) == []
    assert 5_000 < redis.pttl(lease_key(ACCOUNT)) <= TTL_MS


def test_a_lease_that_ran_out_cannot_be_renewed(redis: Redis) -> None:
    lease = holder(redis)
    redis.delete(lease_key(ACCOUNT))
    assert renew(redis, [lease]) == [lease]
    assert not redis.exists(lease_key(ACCOUNT))


@pytest.mark.parametrize("error", [RuntimeError("no database"), KeyboardInterrupt()])
def test_a_pump_that_gets_no_fencing_number_gives_the_account_up(redis: Redis, error: BaseException) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(type(error)):
        acquire(redis, ACCOUNT, next_fence=fail)
    assert holder(redis)


def test_the_scripts_survive_a_flush(redis: Redis) -> None:
    lease = holder(redis)
    redis.script_flush()
    assert renew(redis, [lease]) == []
    redis.script_flush()
    release(redis, lease)
    assert not redis.exists(lease_key(ACCOUNT))


def test_only_accounts_for_which_a_person_waits_now_are_named(redis: Redis) -> None:
    assert waited_for(redis, []) == set()
    assert waited_for(redis, [1, 2, 3]) == set()
    redis.set(ahead_key(2), 1, px=AHEAD_MS)
    redis.set(ahead_key(3), 1, px=10 * AHEAD_MS)  # by a clock that was ahead
    redis.set(ahead_key(4), 1, px=AHEAD_MS)
    assert waited_for(redis, [1, 2, 3]) == {2}
