"""Gives each account to one pump at a time, whatever the number of workers and machines (SPEC P1).

The lease is a key in Redis that lives as long as its holder renews it. A holder that was away for too long
may not know that it lost the lease: so a lease also has a fencing number that grows with every lease, which
each write of the pump carries and the database checks. That number is made in PostgreSQL, so that losing
Redis cannot repeat it.

A key that would live longer than any holder asks for was left by a clock that was ahead and has been set back
since. It belongs to no worker, and would block the account for as long as the clock was ahead.

Errors of Redis pass through these functions: without Redis there is no lease, and nothing may be sent.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import psycopg
import structlog
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from activity import counters
from config.redis.client import client
from delivery import conf
from delivery.engine.database_contact import contact
from delivery.engine.sql import Line, Query

TTL_MS: Final = 15_000
AHEAD_MS: Final = 3000  # for which pumps stand back; whoever is ahead asks again every second
LONGEST_MS: Final = 150_000  # more than LEASE_SECONDS can be set to

ACQUIRE: Final = """
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and left ~= -1 and left <= tonumber(ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
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
    """The right to serve an account, until another pump has a lease with a higher `fence`.

    `marks` are those of the limiter's states that are known, by action: at first those that the shift before left,
    at the end those that the next shift may believe (see `limiter`).
    """

    account_id: int
    token: str
    fence: int
    marks: dict[str, str] = field(default_factory=dict, compare=False)


def lease_key(account_id: int) -> str:
    """Return the key. Its braces are a hash tag: all keys of an account live on one node of a Redis cluster."""
    return f"paceline:{{{account_id}}}:lease"


def ahead_key(account_id: int) -> str:
    """Return the key that is set while a person waits for the account, and pumps stand back."""
    return f"paceline:{{{account_id}}}:ahead"


def waited_for(redis: Redis, account_ids: Sequence[int]) -> set[int]:
    """Return the accounts for which a person waits. A key with too long a life was set by a clock that was ahead."""
    if not account_ids:
        return set()
    # One command for all: almost always nobody waits.
    found = redis.mget([ahead_key(account_id) for account_id in account_ids])
    asked = [each for each, value in zip(account_ids, found, strict=True) if value is not None]
    calls = redis.pipeline(transaction=False)
    for account_id in asked:
        calls.pttl(ahead_key(account_id))
    lives = calls.execute() if asked else []
    return {each for each, left in zip(asked, lives, strict=True) if 0 < left <= AHEAD_MS}


def acquire(
    redis: Redis, account_id: int, *, ttl_ms: int = TTL_MS, next_fence: Callable[[], int]
) -> Lease | None:
    """Return the lease of an account, or None while another pump holds it.

    `next_fence` makes the next fencing number. It is called only once the key is won, so that pumps that find
    the account taken write nothing; if it fails, the key is given up and its error passes on.
    """
    token = secrets.token_hex(16)
    key, script = lease_key(account_id), redis.register_script(ACQUIRE)
    if not script(keys=[key], args=[token, ttl_ms, max(ttl_ms, LONGEST_MS)]):
        return None
    try:
        fence = next_fence()
    except BaseException:
        _release(redis, account_id, token)
        raise
    return Lease(account_id=account_id, token=token, fence=fence)


def held(redis: Redis, account_ids: Sequence[int]) -> list[bool]:
    """Return for each of these accounts whether it has a pump."""
    calls = redis.pipeline(transaction=False)
    for account_id in account_ids:
        calls.pttl(lease_key(account_id))
    return [0 <= left <= LONGEST_MS for left in calls.execute()]


def renew(redis: Redis, leases: Sequence[Lease], *, ttl_ms: int = TTL_MS) -> list[Lease]:
    """Hold the leases for another `ttl_ms`; return those that are lost, whose pumps have to stop."""
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


log = structlog.get_logger(__name__)

ROUNDS = 4  # per life of a lease


class LeaseRenewals:
    """Renews all leases of a process together. Use it on the loop only."""

    def __init__(self) -> None:
        self._held: dict[Lease, Callable[[], None]] = {}
        self._renewing: asyncio.Task[None] | None = None
        # Not one of the loop's own: names that do not resolve and files that are slow to read can take all of them.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="renewals")
        self._line = Line()  # to ask whether the database is there, past statements that hang
        self._asking: asyncio.Task[None] | None = None
        self._since = 0.0  # when there was a lease to renew again

    @contextmanager
    def renewing(self, held: Lease, *, lost: Callable[[], None]) -> Iterator[None]:
        """Renew the lease meanwhile; `lost` is called once another pump has it."""
        if not self._held:
            self._since = time.monotonic()
        self._held[held] = lost
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew_all())
        try:
            yield
        finally:
            self._held.pop(held, None)

    async def close(self) -> None:
        await self._line.close()

    async def _renew_all(self) -> None:
        try:
            while self._held:
                self._ask_database()
                round_ = _give_up if self._silent_for() >= settings.LEASE_SECONDS else _renew
                held = list(self._held)
                for gone in await asyncio.get_running_loop().run_in_executor(self._thread, round_, held):
                    if tell := self._held.pop(gone, None):
                        log.warning("lease_lost", account=gone.account_id)
                        counters.tally(counters.LEASES_LOST)
                        tell()
                await asyncio.sleep(_round_seconds())
        finally:
            self._renewing = None

    def _silent_for(self) -> float:
        """Return the seconds for which the database has not answered; time without a lease does not count."""
        return min(contact.silent_for(), time.monotonic() - self._since)

    def _ask_database(self) -> None:
        """Ask the database, without waiting for the answer: a question may hang until the network notices."""
        waits = self._asking is not None and not self._asking.done()
        if self._silent_for() > _round_seconds() and not waits:
            self._asking = asyncio.create_task(_ask(self._line))


def _round_seconds() -> float:
    return conf.lease_ms() / 1000 / ROUNDS


async def _ask(line: Line) -> None:
    try:
        await line.run(Query(sql="SELECT 1", arguments={}, read=len))
    except psycopg.Error:
        log.warning("database_away")


def _renew(held: list[Lease]) -> list[Lease]:
    """Return the lost leases. A Redis that is away says nothing about the holders: `begin` asks the database."""
    try:
        return renew(client(), held, ttl_ms=conf.lease_ms())
    except RedisError:
        return []


def _give_up(held: list[Lease]) -> list[Lease]:
    """Release and return all leases; where Redis is away too, they expire by themselves."""
    with suppress(RedisError):
        for each in held:
            release(client(), each)
    return held
