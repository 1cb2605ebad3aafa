"""Keeps the leases of all pumps of a process, together: one round trip to Redis however many there are."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import structlog
from redis.exceptions import RedisError

from config.redis import client
from delivery import knobs, lease
from delivery.lease import Lease

log = structlog.get_logger(__name__)

ROUNDS = 4  # per life of a lease


class Keeper:
    """On the loop only."""

    def __init__(self) -> None:
        self._held: dict[Lease, Callable[[], None]] = {}
        self._keeping: asyncio.Task[None] | None = None
        # Not one of the loop's own: names that do not resolve and files that are slow to read can take all of them.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keeper")

    @contextmanager
    def keeping(self, held: Lease, *, lost: Callable[[], None]) -> Iterator[None]:
        """Renew the lease meanwhile; `lost` is called once another pump has it."""
        self._held[held] = lost
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            self._held.pop(held, None)

    async def _keep(self) -> None:
        try:
            while self._held:
                held = list(self._held)
                for gone in await asyncio.get_running_loop().run_in_executor(self._thread, _renew, held):
                    if tell := self._held.pop(gone, None):
                        log.warning("lease_lost", account=gone.account_id)
                        tell()
                await asyncio.sleep(knobs.lease_ms() / 1000 / ROUNDS)
        finally:
            self._keeping = None


def _renew(held: list[Lease]) -> list[Lease]:
    """Those that are lost. A Redis that is away says nothing about who holds what: `begin` asks the database."""
    try:
        return lease.renew(client(), held, ttl_ms=knobs.lease_ms())
    except RedisError:
        return []
