"""Lease renewals: leases stay while their pumps work, and a pump whose lease is gone hears of it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from pytest_django import Settings
from redis import Redis

from config.redis.client import client
from delivery.engine import pump, wakeups
from delivery.engine.database_contact import Contact, parameters
from delivery.engine.lease import Lease, LeaseRenewals, acquire, lease_key
from tests.delivery.door import Door
from tests.delivery.private_redis import PrivateRedis


def test_a_lease_is_renewed_while_it_is_kept(redis: Redis, settings: Settings) -> None:
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, ttl_ms=300, next_fence=lambda: 1)
    assert lease is not None

    async def scene() -> None:
        with LeaseRenewals().renewing(lease, lost=lambda: None):
            await asyncio.sleep(0.1)

    asyncio.run(scene())
    assert redis.pttl(lease_key(1)) > 300


def test_leases_are_renewed_while_the_loop_waits_for_names_and_files(
    redis: Redis, settings: Settings
) -> None:
    """Both use threads of the loop, of which there are few."""
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, ttl_ms=300, next_fence=lambda: 1)
    assert lease is not None
    ends = threading.Event()

    async def scene() -> None:
        for _ in range(64):
            asyncio.get_running_loop().run_in_executor(None, ends.wait)
        with LeaseRenewals().renewing(lease, lost=lambda: None):
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
        renewals = LeaseRenewals()
        with (
            renewals.renewing(gone, lost=lambda: told.append(1)),
            renewals.renewing(kept, lost=lambda: told.append(2)),
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
            with LeaseRenewals().renewing(lease, lost=lambda: told.append(1)):
                await asyncio.sleep(0.1)

        try:
            asyncio.run(scene())
        finally:
            settings.REDIS_URL = usual  # first: others may ask for a client at any moment
            client.cache_clear()
    assert told == []


# The database.


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PostgreSQL is where nobody answers, as behind a network that swallows everything."""
    monkeypatch.setattr("delivery.engine.lease.contact", Contact())
    with Door("tcp://127.0.0.1:1", closed=True) as door:
        where = {**parameters(), "host": "127.0.0.1", "port": urlsplit(door.url).port, "connect_timeout": 2}
        monkeypatch.setattr("delivery.engine.sql.parameters", lambda: where)
        yield


def loses(lease: Lease, *, within: float) -> bool:
    """Return whether the lease was lost within so many seconds."""

    async def scene() -> bool:
        renewals, lost = LeaseRenewals(), asyncio.Event()
        with renewals.renewing(lease, lost=lost.set), suppress(TimeoutError):
            async with asyncio.timeout(within):
                await lost.wait()
        if renewals._asking is not None:
            await asyncio.gather(renewals._asking, return_exceptions=True)
        await renewals.close()
        return lost.is_set()

    return asyncio.run(scene())


@pytest.mark.usefixtures("cut")
def test_a_process_that_is_cut_off_from_the_database_lets_go_of_its_accounts(
    redis: Redis, settings: Settings
) -> None:
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, ttl_ms=60_000, next_fence=lambda: 1)
    assert lease is not None
    assert loses(lease, within=30)
    assert redis.get(lease_key(1)) is None, "others need not wait until it runs out"


@pytest.mark.django_db(transaction=True)
def test_a_process_that_has_nothing_to_write_keeps_its_accounts(redis: Redis, settings: Settings) -> None:
    """Silence says nothing: it asks."""
    settings.LEASE_SECONDS = 2
    lease = acquire(redis, 1, next_fence=lambda: 1)
    assert lease is not None
    assert not loses(lease, within=3)
    assert redis.get(lease_key(1)) is not None


def test_a_pump_that_a_cut_off_worker_gets_is_passed_on_and_takes_no_lease(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[int] = []
    away = Contact()
    monkeypatch.setattr(away, "silent_for", lambda: 60.0)
    nowhere = {**parameters(), "host": "127.0.0.1", "port": 1}
    monkeypatch.setattr("delivery.engine.database_contact.parameters", lambda: nowhere)
    monkeypatch.setattr(pump, "contact", away)
    monkeypatch.setattr(wakeups, "PASS_ON", 0.0)
    monkeypatch.setattr(wakeups, "wake", passed.extend)
    pump.pump(1)
    assert passed == [1]
    assert redis.get(lease_key(1)) is None
