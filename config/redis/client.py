"""Holds the process's one pooled connection to Redis."""

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from config.redis.address import redis_address
from config.redis.connection import CLASSES, CONNECT_SECONDS


@cache
def client() -> Redis:
    """Return a client that threads share; every call has a timeout, so that a hung Redis cannot hang a pump.

    A call is repeated once and at once: a connection that the server closed meanwhile costs nothing, and redis-py's
    own three repetitions with growing pauses would turn five seconds into half a minute.
    """
    address = redis_address(settings.REDIS_URL, ca_file=settings.REDIS_CA_FILE)
    pool = ConnectionPool.from_url(
        address.url,
        connection_class=CLASSES[address.scheme],
        socket_timeout=settings.REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        health_check_interval=30,
        max_connections=512,
        retry=Retry(NoBackoff(), 1),
        **address.tls,
    )
    return Redis(connection_pool=pool)


CLUSTER = (
    "REDIS_URL leads to a Redis Cluster, which is not supported: the limiter and the queues need all of their keys on "
    "one server. Name a single server."
)


def refuse_cluster() -> None:
    """Stop a program whose REDIS_URL leads to a cluster, where half of its keys would be refused later."""
    try:
        clustered = is_cluster()
    except RedisError:
        return  # Redis is away: then it cannot be checked
    if clustered:
        raise ImproperlyConfigured(CLUSTER)


def is_cluster() -> bool:
    try:
        return bool(client().info("cluster").get("cluster_enabled"))
    except ResponseError:
        return False  # this user may not run the command
