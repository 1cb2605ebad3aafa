"""Django's cache on our Redis, so that the limits that django-allauth counts in it hold across all processes.

While Redis does not answer, each process counts in its own memory: then the limits hold in each process, people can
still log in, and a program starts without Redis.
"""

from collections.abc import Callable
from typing import Any, ClassVar, cast

import structlog
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis
from redis.exceptions import RedisError

from config.redis.client import client

log = structlog.get_logger(__name__)


class _Client(RedisCacheClient):
    """Uses the pooled connection of the process, with its timeouts and its TLS."""

    def get_client(self, key: object = None, *, write: bool = False) -> Redis:  # noqa: ARG002 - Django's signature
        return client()


def _or_in_memory(name: str) -> Callable[..., Any]:
    """Return a method of the cache that falls back to this process's memory."""

    def method(self: "SharedCache", *args: Any, **given: Any) -> Any:
        try:
            return getattr(super(SharedCache, self), name)(*args, **given)
        except RedisError as error:
            log.warning("cache_in_memory", error=type(error).__name__)
            return getattr(self.in_memory, name)(*args, **given)

    return method


class SharedCache(RedisCache):
    """Keeps values in Redis, and in memory while Redis is away."""

    _class = _Client
    in_memory: ClassVar[LocMemCache] = LocMemCache("shared-cache", {})

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client

    add = cast("Any", _or_in_memory("add"))
    get = cast("Any", _or_in_memory("get"))
    set = cast("Any", _or_in_memory("set"))
    delete = cast("Any", _or_in_memory("delete"))
    has_key = cast("Any", _or_in_memory("has_key"))
    incr = cast("Any", _or_in_memory("incr"))

    def clear(self) -> None:
        """Refuse: it would empty the whole database, limits and queues included."""
        raise NotImplementedError("The cache shares its Redis with limits and queues.")
