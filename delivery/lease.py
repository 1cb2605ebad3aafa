"""One account is served by one pump at a time, whatever the number of workers and machines (SPEC P1).

The lease is a key in Redis that lives as long as its holder renews it. A holder that was away for too long
may not know that it lost the lease: so a lease also has a fencing number that grows with every lease, which
each write of the pump carries and the database checks. That number is made in PostgreSQL, so that losing
Redis cannot repeat it.

Errors of Redis pass through these functions: without Redis there is no lease, and nothing may be sent.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redis import Redis

TTL_MS: Final = 15_000

# Only the holder's own key may be touched: it may have run out, and another pump may hold it by now.
RENEW: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
RELEASE: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to serve an account, until another pump has a lease with a higher `fence`."""

    account_id: int
    token: str
    fence: int


def lease_key(account_id: int) -> str:
    """The braces are a hash tag: all keys of an account live on one node of a Redis cluster."""
    return f"paceline:{{{account_id}}}:lease"


def acquire(
    redis: Redis, account_id: int, *, ttl_ms: int = TTL_MS, next_fence: Callable[[], int]
) -> Lease | None:
    """The lease of an account, or None while another pump holds it.

    `next_fence` makes the next fencing number. It is called only once the key is won, so that pumps that find
    the account taken write nothing; if it fails, the key is given up and its error passes on.
    """
    token = secrets.token_hex(16)
    if not redis.set(lease_key(account_id), token, nx=True, px=ttl_ms):
        return None
    try:
        fence = next_fence()
    except BaseException:
        _release(redis, account_id, token)
        raise
    return Lease(account_id=account_id, token=token, fence=fence)


def renew(redis: Redis, leases: Sequence[Lease], *, ttl_ms: int = TTL_MS) -> list[Lease]:
    """Hold the leases for another `ttl_ms`; answers with those that are lost, whose pumps have to stop."""
    calls = redis.pipeline(transaction=False)
    script = redis.register_script(RENEW)
    for lease in leases:
        script(keys=[lease_key(lease.account_id)], args=[lease.token, ttl_ms], client=calls)
    return [lease for lease, kept in zip(leases, calls.execute(), strict=True) if not kept]


def release(redis: Redis, lease: Lease) -> None:
    """Let the next pump in. Nothing happens to a lease that is already somebody else's."""
    _release(redis, lease.account_id, lease.token)


def _release(redis: Redis, account_id: int, token: str) -> None:
    redis.register_script(RELEASE)(keys=[lease_key(account_id)], args=[token])
