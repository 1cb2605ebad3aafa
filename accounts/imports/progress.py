"""The progress of an import, for its page: kept in Redis, since the database shows its rows only at the end."""

import json
import time
from dataclasses import asdict, dataclass

from redis.exceptions import RedisError

from config.redis.client import client

KEPT = 20  # seconds: a worker reports more often
EVERY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    rows: int = 0
    share: float = 0.0

    @property
    def percent(self) -> int:
        return round(self.share * 100)


class Reporter:
    """Reports progress, a few times per second at most. An import continues when Redis is away."""

    def __init__(self, job_id: int) -> None:
        self._key = _key(job_id)
        self._next = 0.0

    def tell(self, *, rows: int, share: float) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        try:
            client().set(self._key, json.dumps(asdict(Progress(rows=rows, share=share))), ex=KEPT)
        except RedisError:
            self._next += KEPT


def progress_of(job_id: int) -> Progress | None:
    """Return the progress, or None while no worker handles the import."""
    try:
        told = client().get(_key(job_id))
    except RedisError:
        return None
    return Progress(**json.loads(told)) if isinstance(told, bytes | str) else None


def forget(job_id: int) -> None:
    try:
        client().delete(_key(job_id))
    except RedisError:
        return


def _key(job_id: int) -> str:
    return f"paceline:import:{job_id}"
