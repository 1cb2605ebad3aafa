"""Tells shifts what changed under them: their account, its limits, its runs, or a person who waits for the account.

A shift reads its account and its limits when it starts, and takes permits and targets for a minute ahead. So that a
lowered limit, a pause or a new run takes hold at once, all shifts of a process share one look each second. The look
compares fingerprints: nobody who changes a row has to remember to announce it.

The last look at each message does not depend on this (`last_look.py`): what this module finds is given back sooner.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import structlog
from redis.exceptions import RedisError

from config.redis.client import client
from delivery.engine.batching import Batches
from delivery.engine.lease import waited_for
from delivery.engine.sql import execute

log = structlog.get_logger(__name__)

EVERY = 1.0  # seconds between two looks

# What the engine itself writes while it sends (wake-up, trouble, slow-down, counters) is not part of it; what a report
# changed in these is. Rows are hashed as they are: written out as text first, they took twice as long.
SEEN = """
SELECT a.id,
       hash_record_extended(ROW(a.status, a.archived_at, a.owner_id, a.transport, a.credentials, a.profile, a.as_before,
                            a.zone, a.group_concurrency, a.service_per_24_hours, a.shows_typing,
                            a.slowed_by_report_at, a.warmup_start, a.warmup_step, a.warmup_ceiling,
                            a.warmup_clean_days, a.health, a.work_start_hour, a.work_end_hour, a.work_days,
                            a.reconnected_at, limits.own), 0),
       COALESCE(work.runs, 0)
FROM accounts_account a
CROSS JOIN LATERAL (
    SELECT bit_xor(hash_record_extended(l, 0)) AS own FROM accounts_limit l WHERE l.account_id = a.id
) limits
CROSS JOIN LATERAL (
    SELECT bit_xor(hash_record_extended(ROW(r.id, r.priority, r.closes_at, r.total), 0)) AS runs
    FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
    WHERE share.account_id = a.id AND share.open AND r.status || '' = 'running'
      AND NOT EXISTS (SELECT 1 FROM accounts_sendingstop s
                      WHERE s.ended_at IS NULL AND COALESCE(s.owner_id, r.owner_id) = r.owner_id)
) work
WHERE a.id = ANY(%(accounts)s::bigint[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Fingerprints of an account with its limits, and of the runs that it may serve."""

    account: int
    work: int


def look_at(account_ids: Sequence[int]) -> dict[int, Seen]:
    """Return the fingerprints of these accounts, in one statement."""
    rows = execute(SEEN, {"accounts": list(account_ids)})
    return {row[0]: Seen(account=row[1], work=row[2]) for row in rows}


@dataclass(slots=True, kw_only=True, eq=False)
class Watch:
    """One shift that wants to be told."""

    account_id: int
    seen: Seen
    ended: Callable[[], None]
    moved: Callable[[], None]


class Changes:
    """Looks for all shifts of a process. Use it on the loop only."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._watches: set[Watch] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def told(
        self, account_id: int, seen: Seen, *, ended: Callable[[], None], moved: Callable[[], None]
    ) -> Iterator[None]:
        """Tell a shift meanwhile: `ended` if what it read at its start is old, `moved` if its runs are others.

        `seen` is from before the shift read anything.
        """
        watch = Watch(account_id=account_id, seen=seen, ended=ended, moved=moved)
        self._watches.add(watch)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_around())
        try:
            yield
        finally:
            self._watches.discard(watch)

    async def _look_around(self) -> None:
        try:
            while self._watches:
                await asyncio.sleep(EVERY)
                asked = list(self._watches)  # a shift that starts meanwhile knows more than this answer
                try:
                    found, wanted = await self._batches.ask(partial(_look, asked))
                except Exception:  # the database is away: BEGIN finds out as well
                    log.warning("changes_not_read", exc_info=True)
                    continue
                for watch in asked:
                    _tell(watch, found.get(watch.account_id), waited_for=watch.account_id in wanted)
        finally:
            self._looking = None


def _look(watches: Sequence[Watch]) -> tuple[dict[int, Seen], set[int]]:
    accounts = [watch.account_id for watch in watches]
    try:
        wanted = waited_for(client(), accounts)
    except RedisError:
        wanted = set()
    return look_at(accounts), wanted


def _tell(watch: Watch, found: Seen | None, *, waited_for: bool) -> None:
    if found is None or found.account != watch.seen.account or waited_for:
        watch.ended()
    elif found.work != watch.seen.work:
        watch.seen = found
        watch.moved()
