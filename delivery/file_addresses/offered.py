"""Decides, for the messages of one shift, which of them hold the address of their file instead of the file.

An address that a gateway cannot use costs a refusal, or in the worst case a message in doubt. So until an address has
worked, one message at a time tries it, and the others hold their files; after a failure none does for a while.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import structlog
from django.conf import settings
from redis import Redis, RedisError

from config.redis.client import client
from delivery.file_addresses import memory, tokens
from delivery.file_addresses.memory import Experience
from delivery.file_addresses.tokens import Ticket
from delivery.parts import FrozenPart
from delivery.transports.base import Fetching, FileAddress, Transport

log = structlog.get_logger(__name__)

REUSED_SECONDS = 300  # for which messages share one address of a file


@dataclass(slots=True)
class _Made:
    url: str
    until: float = field(default_factory=lambda: time.time() + REUSED_SECONDS)


class Addresses(Fetching):
    """Gives messages of one account the addresses of their files, and learns whether its gateway can use them."""

    def __init__(self, account_id: int, experience: Experience) -> None:
        self.account_id = account_id
        self.experience = experience
        self._trying_until = 0.0  # monotonic; the message that tries an address may never come back
        self._made: dict[tuple[int | None, str], _Made] = {}
        self._keeping: set[asyncio.Future[None]] = set()

    def of_run(self, run_id: int | None, *, patience: float) -> Callable[[FrozenPart], FileAddress | None]:
        """Return the function that gives a part of the run an address; `patience` is how long a send takes at most."""
        return partial(self._address, run_id, patience)

    def _address(self, run_id: int | None, patience: float, part: FrozenPart) -> FileAddress | None:
        if not self._may_try(patience):
            return None
        return FileAddress(url=self._url(run_id, part), fetching=self)

    def _may_try(self, patience: float) -> bool:
        if self.experience.works:
            return True
        if time.time() < self.experience.until or time.monotonic() < self._trying_until:
            return False
        self._trying_until = time.monotonic() + patience
        return True

    def _url(self, run_id: int | None, part: FrozenPart) -> str:
        made = self._made.get((run_id, part.file))
        if made is None or time.time() >= made.until:
            ticket = Ticket(
                file=part.file,
                content_type=part.content_type,
                account_id=self.account_id,
                run_id=run_id,
                until=int(time.time()) + settings.FILES_URL_MINUTES * 60,
            )
            made = self._made[run_id, part.file] = _Made(tokens.url_of(ticket))
        return made.url

    def worked(self) -> None:
        self._trying_until = 0.0
        if not self.experience.works:
            self._learn(Experience(works=True))

    def failed(self, words: str) -> None:
        self._learn_failure(words)

    def in_doubt(self, words: str) -> None:
        # The gateway may hang while it tries to fetch the file. If it was something else, no harm is done.
        self._learn_failure(words)

    def _learn_failure(self, words: str) -> None:
        self._trying_until = 0.0
        if time.time() < self.experience.until:
            return  # several messages met the same failure
        log.warning("files_not_fetched", account=self.account_id, reason=words)
        self._learn(self.experience.after_failure(words, now=time.time()))

    def _learn(self, experience: Experience) -> None:
        self.experience = experience
        keeping = asyncio.get_running_loop().run_in_executor(
            None, _keep, client(), self.account_id, experience
        )
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)


def addresses_for(account_id: int, transport: Transport) -> Addresses | None:
    """Return the addresses for an account's messages; None where files go inside them. Reads Redis."""
    if not settings.FILES_URL or not transport.capabilities.media_urls:
        return None
    try:
        return Addresses(account_id, memory.recall(client(), account_id))
    except RedisError:
        return None


def _keep(redis: Redis, account_id: int, experience: Experience) -> None:
    try:
        memory.remember(redis, account_id, experience)
    except RedisError:
        log.warning("files_not_remembered", account=account_id)
