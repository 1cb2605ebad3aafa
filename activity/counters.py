"""Counters of events, for the metrics: in Redis, where the processes of all machines count together.

A counter that is lost with Redis starts at zero, as readers of metrics expect after a restart.
"""

import json
from collections.abc import Iterator

import structlog
from django.db import transaction
from redis.exceptions import RedisError

from config.redis.client import client

log = structlog.get_logger(__name__)

KEY = "paceline:counters"


def tell(event: str, *, reason: str, number: int = 1, **details: object) -> None:
    """Log and count an event under one name and with one reason, after the commit."""

    def told() -> None:
        log.info(event, reason=reason, number=number, **details)
        count(event, number, reason=reason)

    if number:
        transaction.on_commit(told)


def count(name: str, by: int = 1, **labels: str) -> None:
    """Add to a counter. An error here never stops the caller."""
    try:
        client().hincrby(KEY, json.dumps([name, sorted(labels.items())]), by)
    except RedisError:
        log.warning("not_counted", counter=name)


def counted() -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield every counter with its labels and its value."""
    found: dict[bytes, bytes] = client().hgetall(KEY)  # type: ignore[assignment]  # redis-py types both clients
    for field, value in sorted(found.items()):
        name, labels = json.loads(field)
        yield name, dict(labels), int(value)
