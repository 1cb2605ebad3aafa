"""Counts the requests of each key, in Redis, per minute of the clock.

These limits protect this installation. What protects an account from being banned is the account's own limits, which
count messages and hold for every door. So where Redis does not answer, requests are let through: nothing is sent then
either, and a program can still read why.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from redis.exceptions import RedisError

from config.redis.client import client

log = structlog.get_logger(__name__)

MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The number of requests that a key has left in this minute."""

    limit: int
    used: int
    reset: int  # seconds until the next minute

    @property
    def exceeded(self) -> bool:
        return self.used > self.limit

    @property
    def headers(self) -> dict[str, str]:
        left = max(0, self.limit - self.used)
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(left),
            "RateLimit-Reset": str(self.reset),
        }


def take(key_id: int, *, now: datetime) -> Allowance | None:
    """Count one request of the key; return its allowance, or None while Redis does not answer."""
    second = int(now.timestamp())
    name = f"paceline:api:{key_id}:{second // MINUTE}"
    try:
        with client().pipeline(transaction=True) as pipeline:
            pipeline.incr(name)
            pipeline.expire(name, 2 * MINUTE)
            used, _ = pipeline.execute()
    except RedisError:
        log.warning("api_not_counted", key=key_id)
        return None
    return Allowance(limit=settings.API_PER_MINUTE, used=int(used), reset=MINUTE - second % MINUTE)
