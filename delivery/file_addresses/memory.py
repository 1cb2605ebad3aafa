"""Remembers per account whether its gateway can fetch files from here, for the workers and for the account's page.

It is kept in Redis, and may be lost there: then one message at a time tries again.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from redis import Redis, RedisError

from config.redis.client import client

FIRST_SECONDS = 3600  # for which files go inside the messages after a failure
MOST_SECONDS = 24 * 3600
KEPT_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """The experience of an account with its gateway; times in seconds since 1970."""

    works: bool = False  # the last message with an address was taken
    failures: int = 0  # in a row
    since: float = 0.0  # of the first of them
    until: float = 0.0  # when an address is tried again
    words: str = ""

    def after_failure(self, words: str, *, now: float) -> "Experience":
        """Return what follows from a failure: twice the wait of the one before, up to a day."""
        wait = min(FIRST_SECONDS * 2 ** min(self.failures, 10), MOST_SECONDS)
        return Experience(
            failures=self.failures + 1,
            since=self.since if self.failures else now,
            until=now + wait,
            words=words,
        )

    @property
    def inside_since(self) -> datetime:
        """Return since when files go inside the messages."""
        return datetime.fromtimestamp(self.since, UTC)

    @property
    def tried_again_at(self) -> datetime:
        return datetime.fromtimestamp(self.until, UTC)


def recall(redis: Redis, account_id: int) -> Experience:
    """Return what is known of the account's gateway and the present FILES_URL; raise RedisError."""
    try:
        found: dict[str, Any] = json.loads(redis.get(_key(account_id)) or b"{}")
        return Experience(**found) if found.pop("url", "") == settings.FILES_URL else Experience()
    except (ValueError, TypeError, AttributeError):  # of another version
        return Experience()


def remember(redis: Redis, account_id: int, experience: Experience) -> None:
    known = asdict(experience) | {"url": settings.FILES_URL}
    redis.set(_key(account_id), json.dumps(known), ex=KEPT_SECONDS)


def shown(account_id: int) -> Experience | None:
    """Return what is known, for a page; None where files are not fetched, or Redis is away."""
    try:
        return recall(client(), account_id) if settings.FILES_URL else None
    except RedisError:
        return None


def forget(account_id: int) -> None:
    """Forget what is known: a person had the account checked, or its gateway may be another one now."""
    try:
        client().delete(_key(account_id))
    except RedisError:
        return  # then it is tried again when its time has come


def _key(account_id: int) -> str:
    return f"paceline:{{{account_id}}}:files"
