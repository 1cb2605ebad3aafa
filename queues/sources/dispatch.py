"""Gives sources that have something to do to workers: few at once, so that slow services leave the workers to sending.

At most `AT_ONCE` sources of all owners are worked on at the same time, and one of each owner. Those that waited
longest come first.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from django.db import connection
from django.utils import timezone

from config.celery import app
from config.redis.publishing import publish

BUSY = timedelta(seconds=90)  # longer than two requests: a worker that died gives its source back after this
TASK = "queues.serve_source"
AT_ONCE, EACH = 4, 1

TAKE = """
WITH busy AS MATERIALIZED (
    SELECT owner_id, count(*) AS number FROM queues_source WHERE busy_until > %(now)s GROUP BY owner_id
), due AS (
    SELECT s.id, s.served_at,
           row_number() OVER (PARTITION BY s.owner_id ORDER BY s.served_at NULLS FIRST, s.id)
           + COALESCE((SELECT number FROM busy WHERE busy.owner_id = s.owner_id), 0) AS place
    FROM queues_source s
    JOIN accounts_user u ON u.id = s.owner_id AND u.is_active
    JOIN queues_queue q ON q.id = s.queue_id AND q.archived_at IS NULL
    WHERE s.switched_off_at IS NULL AND s.stopped_at IS NULL
      AND COALESCE(s.retry_at, %(now)s) <= %(now)s AND COALESCE(s.busy_until, %(now)s) <= %(now)s
      AND (s.next_read_at <= %(now)s OR s.next_tell_at <= %(now)s)
      AND (%(only)s::bigint[] IS NULL OR s.id = ANY(%(only)s::bigint[]))
), chosen AS (
    SELECT id FROM due WHERE place <= %(each)s ORDER BY served_at NULLS FIRST, id
    LIMIT GREATEST(%(total)s - (SELECT COALESCE(sum(number), 0) FROM busy), 0)::int
)
UPDATE queues_source SET busy_until = %(until)s, lease = lease + 1
WHERE id IN (SELECT id FROM queues_source WHERE id IN (SELECT id FROM chosen) FOR NO KEY UPDATE SKIP LOCKED)
  AND COALESCE(busy_until, %(now)s) <= %(now)s
RETURNING id, lease
"""


def dispatch() -> list[int]:
    """Take sources that have something to do, and start a task for each; return their ids."""
    taken = take()
    for source_id, lease in taken:
        publish(partial(app.send_task, TASK, args=[source_id, lease]))
    return [source_id for source_id, _ in taken]


def take(only: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Take sources for a worker; return their ids with the numbers of their leases."""
    now = timezone.now()
    arguments: dict[str, Any] = {
        "now": now,
        "until": now + BUSY,
        "each": EACH,
        "total": AT_ONCE,
        "only": None if only is None else list(only),
    }
    with connection.cursor() as cursor:
        cursor.execute(TAKE, arguments)
        return sorted((row[0], row[1]) for row in cursor.fetchall())


def serve_at_once(source_id: int, *, longest: timedelta, rng: Random) -> bool:
    """Work on one source here until nothing is to be done for it; return False where another worker has it."""
    from queues.sources import serve  # noqa: PLC0415 - loads the libraries of all services

    until = timezone.now() + longest
    worked = False
    while timezone.now() < until and (taken := take([source_id])):
        worked = True
        serve.serve(source_id, lease=taken[0][1], rng=rng)
    return worked
