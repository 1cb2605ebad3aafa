"""The keeper: leases stay while their pumps work, and a pump whose lease is gone hears of it."""

import asyncio
import threading

from pytest_django import Settings
from redis import Redis

from config.redis import client
from delivery.keeper import Keeper
from delivery.lease import acquire, lease_key
from tests.delivery.private_redis import PrivateRedis


def test_a_lease_is_renewed_while_it_is_kept(redis: Redis, settings: Settings) -> None:
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, ttl_ms=300, next_fence=lambda: 1)
    assert lease is not None

    async def scene() -> None:
        with Keeper().keeping(lease, lost=lambda: None):
            await asyncio.sleep(0.1)

    asyncio.run(scene())
    assert redis.pttl(lease_key(1)) > 300


def test_leases_are_renewed_while_the_loop_waits_for_names_and_files(
    redis: Redis, settings: Settings
) -> None:
    """Both are looked up in threads of the loop, of which there are few."""
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, ttl_ms=300, next_fence=lambda: 1)
    assert lease is not None
    ends = threading.Event()

    async def scene() -> None:
        for _ in range(64):
            asyncio.get_running_loop().run_in_executor(None, ends.wait)
        with Keeper().keeping(lease, lost=lambda: None):
            await asyncio.sleep(0.2)
        ends.set()

    asyncio.run(scene())
    assert redis.pttl(lease_key(1)) > 300


def test_a_pump_whose_lease_is_gone_is_told_and_the_others_are_not(redis: Redis) -> None:
    gone, kept = (acquire(redis, number, next_fence=lambda: 1) for number in (1, 2))
    assert gone is not None
    assert kept is not None
    redis.delete(lease_key(1))
    told = []

    async def scene() -> None:
        keeper = Keeper()
        with (
            keeper.keeping(gone, lost=lambda: told.append(1)),
            keeper.keeping(kept, lost=lambda: told.append(2)),
        ):
            await asyncio.sleep(0.1)

    asyncio.run(scene())
    assert told == [1]


def test_a_redis_that_is_away_takes_no_lease(settings: Settings) -> None:
    told, usual = [], settings.REDIS_URL
    with PrivateRedis() as server:
        lease = acquire(server.client(), 1, next_fence=lambda: 1)
        assert lease is not None
        settings.REDIS_URL = f"unix://{server.client().connection_pool.connection_kwargs['path']}"
        client.cache_clear()
        server.stop()

        async def scene() -> None:
            with Keeper().keeping(lease, lost=lambda: told.append(1)):
                await asyncio.sleep(0.1)

        try:
            asyncio.run(scene())
        finally:
            settings.REDIS_URL = usual  # first: others may ask for a client at any moment
            client.cache_clear()
    assert told == []
