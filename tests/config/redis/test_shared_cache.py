"""The limits of log-ins hold across processes, and in each process while Redis is away."""

import pytest
from allauth.core.internal import ratelimit
from django.core.cache import cache, caches
from django.core.cache.backends.locmem import LocMemCache
from django.test import RequestFactory
from pytest_django import Settings
from redis import Redis

from config.redis.client import client
from config.redis.shared_cache import SharedCache

GONE = "redis://127.0.0.1:1/0"


def reset(times: int) -> list[bool]:
    """Return for each request for a new password whether it is let through."""
    request = RequestFactory().post("/login/forgotten/", REMOTE_ADDR="203.0.113.7")
    rates = {"reset": "3/m/ip"}
    return [
        ratelimit.consume(request, app="allauth.account", action="reset", config=rates) is not None
        for _ in range(times)
    ]


@pytest.fixture
def away(redis: Redis, settings: Settings) -> None:
    settings.REDIS_URL = GONE
    client.cache_clear()
    SharedCache.in_memory.clear()


def test_another_process_counts_on(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reset(3) == [True, True, True]
    caches.close_all()
    monkeypatch.setattr(SharedCache, "in_memory", LocMemCache("another process", {}))
    assert reset(1) == [False]
    assert all(redis.ttl(key) > 0 for key in redis.scan_iter("paceline:cache:*"))


def test_while_redis_is_away_each_process_counts_alone(away: None) -> None:
    try:
        assert reset(4) == [True, True, True, False]
    finally:
        client.cache_clear()


def test_it_empties_no_database_that_holds_limits_too(redis: Redis) -> None:
    redis.set("paceline:limit", 1)
    with pytest.raises(NotImplementedError):
        cache.clear()
    assert redis.get("paceline:limit") == b"1"
