"""The channel layer of the live pages: few connections for any number of sockets, and pages that outlive Redis.

channels_redis 4.3 is changed here and nowhere else:

- A pool of redis-py raises when its connections are used up. Here a socket waits for one of `CONNECTIONS`.
- A socket stays a member of its groups for a day, also when its process was killed. Here a process renews the
  memberships of its sockets every `RENEW_SECONDS`, and those that nobody renews are forgotten after `FORGET_SECONDS`.
- When Redis goes away, every listening socket ends with an error. Here they wait. When Redis is back, they are in
  their groups again, whatever it has forgotten, and get the message `live.again`, since others may have been lost.
  After `PATIENCE_SECONDS` they get `live.away`, so that the pages ask by themselves instead.
"""

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any

import structlog
from channels_redis.core import RedisChannelLayer
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

CONNECTIONS = 50  # of one process
WAIT_SECONDS = 20  # for a connection that is free
RENEW_SECONDS = 60.0
FORGET_SECONDS = 600  # by the sender's clock, which may be minutes ahead of ours
PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.5  # between two tries to reach Redis
# Messages that wait in Redis for one process. Beyond that a message is lost, and may have been a run's last one.
CAPACITY = 2_000
AT_ONCE = 500  # memberships that are renewed in one round trip

TROUBLE = (RedisError, OSError)


class LiveLayer(RedisChannelLayer):  # type: ignore[misc]  # channels_redis has no types
    """A channel layer on one Redis server."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**{"group_expiry": FORGET_SECONDS, "capacity": CAPACITY, **config})
        self._groups: defaultdict[str, set[str]] = defaultdict(set)  # by channel
        self._renewed = time.monotonic()
        self._away_since: float | None = None
        self._told_away = False

    def create_pool(self, index: int) -> BlockingConnectionPool:
        """Return a pool in which whoever finds no free connection waits for one."""
        host = dict(self.hosts[index])
        return BlockingConnectionPool.from_url(
            host.pop("address"),
            max_connections=CONNECTIONS,
            timeout=WAIT_SECONDS,
            retry=Retry(NoBackoff(), 1),
            **host,
        )

    async def group_add(self, group: str, channel: str) -> None:
        await super().group_add(group, channel)
        self._groups[channel].add(group)

    async def group_discard(self, group: str, channel: str) -> None:
        """Take a channel out of a group. Where Redis does not answer, the membership ends by itself."""
        self._groups[channel].discard(group)
        if not self._groups[channel]:
            del self._groups[channel]
        with suppress(*TROUBLE):
            await super().group_discard(group, channel)

    async def receive_single(self, channel: str) -> tuple[Any, dict[str, Any]]:
        """Return the next message, and those of its channels that are still here: nobody would empty the others."""
        channels, message = await super().receive_single(channel)
        if isinstance(channels, list):
            channels = [each for each in channels if each in self._groups]
        return channels, message

    async def _brpop_with_clean(self, index: int, channel: str, timeout: float) -> bytes | None:  # noqa: ASYNC109
        """Return the next message, or None when there was none for a while or Redis is away; the caller asks again."""
        try:
            if self._is_due():
                await self._renew(index)
            if self._away_since is not None:
                self._away_since, self._told_away = None, False
                log.info("live_again", sockets=len(self._groups))
                return self._to_all("live.again")
            found: bytes | None = await super()._brpop_with_clean(index, channel, timeout)
        except TROUBLE as error:
            return await self._wait(error)
        return found

    async def _clean_receive_backup(self, index: int, channel: str) -> None:
        """Forget a message that was received. Where Redis does not answer, the message may come a second time."""
        with suppress(*TROUBLE):
            await super()._clean_receive_backup(index, channel)

    def _is_due(self) -> bool:
        return self._away_since is not None or time.monotonic() - self._renewed > RENEW_SECONDS

    async def _renew(self, index: int) -> None:
        """Write all memberships of this process again; they count from now on."""
        members = [(group, channel) for channel, groups in self._groups.items() for group in groups]
        connection, now = self.connection(index), time.time()
        for start in range(0, len(members), AT_ONCE):
            pipe = connection.pipeline(transaction=False)
            for group, channel in members[start : start + AT_ONCE]:
                pipe.zadd(self._group_key(group), {channel: now})
                pipe.expire(self._group_key(group), self.group_expiry)
            await pipe.execute()
        await connection.ping()
        self._renewed = time.monotonic()

    async def _wait(self, error: Exception) -> bytes | None:
        """Pause before the next try; after a while return the message that Redis is away, once."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            log.warning("live_away", sockets=len(self._groups), error=str(error))
        await asyncio.sleep(PAUSE_SECONDS)
        if self._told_away or now - self._away_since < PATIENCE_SECONDS:
            return None
        self._told_away = True
        return self._to_all("live.away")

    def _to_all(self, kind: str) -> bytes:
        """Return a message to every socket of this process, as if it came from Redis."""
        message: bytes = self.serialize({"type": kind, "__asgi_channel__": list(self._groups)})
        return message
