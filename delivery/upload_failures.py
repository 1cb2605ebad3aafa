"""How often in a row the uploads of an account failed.

A file goes up before any target is claimed, so no target's attempts count these failures. Without a count an
account whose session is down would be asked again for ever, and never be called offline.
"""

from typing import Final

from redis import Redis

from delivery.lease import lease_key

# Failures that lie further apart than the longest wait between them have nothing to do with each other.
FORGOTTEN_AFTER: Final = 6 * 3600


def another(redis: Redis, account_id: int, *, most: int) -> int:
    """Which failure in a row this one is, from 1. After the one that ends all patience the count starts anew."""
    key = _key(account_id)
    with redis.pipeline() as pipe:
        pipe.incr(key)
        pipe.expire(key, FORGOTTEN_AFTER)
        attempt = int(pipe.execute()[0])
    if attempt >= most:
        redis.delete(key)
    return attempt


def over(redis: Redis, account_id: int) -> None:
    """A file went up."""
    redis.delete(_key(account_id))


def _key(account_id: int) -> str:
    return f"{lease_key(account_id).removesuffix('lease')}upload-failures"
