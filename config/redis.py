"""The process's one pooled connection to Redis."""

from functools import cache

from django.conf import settings
from redis import Redis


@cache
def client() -> Redis:
    """A client that threads share; every call has a timeout, so that a hung Redis cannot hang a pump."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=5,
        socket_connect_timeout=2,
        health_check_interval=30,
        max_connections=512,
    )
