"""Counters of events, for the metrics: in Redis, where the processes of all machines count together.

A counter that is lost with Redis starts at zero, as readers of metrics expect after a restart. What happens with every
message is added up inside the process first (`tally`), and written every few seconds (`flush`): a worker that is killed
takes these seconds with it. Metrics are for watching; the ledger is the truth.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator

import structlog
from django.db import transaction
from redis.exceptions import RedisError

from config.redis.client import client

log = structlog.get_logger(__name__)

KEY = "paceline:counters"
MESSAGES, LEASES_LOST, LIMITER_REBUILDS = "messages", "leases_lost", "limiter_rebuilds"

Name = tuple[str, tuple[tuple[str, str], ...]]
_tallied: Counter[Name] = Counter()
_tallying = threading.Lock()


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


def tally(name: str, by: int = 1, **labels: str) -> None:
    """Add to a counter in this process alone, for things that happen with every message."""
    with _tallying:
        _tallied[name, tuple(labels.items())] += by


def flush() -> None:
    """Add to the counters of all processes what this one has tallied. An error here never stops the caller."""
    global _tallied
    with _tallying:
        taken, _tallied = _tallied, Counter()
    if not taken:
        return
    try:
        with client().pipeline(transaction=True) as pipeline:
            for (name, labels), by in taken.items():
                pipeline.hincrby(KEY, json.dumps([name, sorted(labels)]), by)
            pipeline.execute()
    except RedisError:
        log.warning("not_counted", counters=len(taken))
        with _tallying:
            _tallied.update(taken)


def counted() -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield every counter with its labels and its value."""
    found: dict[bytes, bytes] = client().hgetall(KEY)  # type: ignore[assignment]  # redis-py types both clients
    for field, value in sorted(found.items()):
        name, labels = json.loads(field)
        yield name, dict(labels), int(value)
