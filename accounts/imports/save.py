"""Turns the checked rows of an import into recipients in one transaction: all of them or none."""

from typing import Any

from django.db import connection

from accounts.imports.progress import Reporter
from accounts.models import Import
from accounts.recipients.erased import keep_out

CHUNK = 5_000

# One import of an owner at a time: two imports that lock the same recipients in different order would deadlock.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('import for ' || %(owner)s, 0))"

TAGS = """
INSERT INTO accounts_tag (owner_id, name)
SELECT %(owner)s, name FROM (
    SELECT unnest(%(tags)s::text[]) AS name
    UNION
    SELECT unnest(tags) FROM accounts_importrow WHERE job_id = %(job)s AND problem = '' AND twin IS NULL
) wanted ORDER BY name
ON CONFLICT (owner_id, name) DO NOTHING
"""

# Values that the file leaves empty stay as they were, and consent never changes: an import opts nobody in.
UPDATE = """
DO UPDATE SET name = COALESCE(NULLIF(excluded.name, ''), p.name), fields = p.fields || excluded.fields,
              archived_at = NULL
"""
# The system column xmax is not zero for a row that existed before.
SAVE = """
WITH saved AS (
    INSERT INTO accounts_recipient AS p (owner_id, channel, kind, address, name, fields, account_id, attempts,
                                         created_at)
    SELECT %(owner)s, %(channel)s, kind, address, name, fields, %(account)s::bigint, 0, now()
    FROM accounts_importrow
    WHERE job_id = %(job)s AND number > %(after)s AND number <= %(upto)s AND problem = '' AND twin IS NULL
    ORDER BY number
    ON CONFLICT (owner_id, channel, address) {on_existing}
    RETURNING id, address, CASE WHEN p.xmax = 0 THEN 'added' ELSE 'updated' END AS outcome
)
UPDATE accounts_importrow r SET outcome = saved.outcome, saved_as = saved.id FROM saved
WHERE r.job_id = %(job)s AND r.number > %(after)s AND r.number <= %(upto)s AND r.address = saved.address
  AND r.twin IS NULL
"""
# Use the ids that were just written: looking up recipients by their addresses, among rows that the planner has no
# statistics of yet, took minutes.
TAG = """
INSERT INTO accounts_recipient_tags (recipient_id, tag_id)
SELECT r.saved_as, t.id
FROM accounts_importrow r
JOIN accounts_tag t ON t.owner_id = %(owner)s AND t.name = ANY(r.tags || %(tags)s::varchar[])
WHERE r.job_id = %(job)s AND r.number > %(after)s AND r.number <= %(upto)s AND r.saved_as IS NOT NULL
ON CONFLICT DO NOTHING
"""
LEFT = """
UPDATE accounts_importrow SET outcome = 'left'
WHERE job_id = %(job)s AND problem = '' AND twin IS NULL AND outcome = ''
"""
COUNT = """
SELECT count(*) FILTER (WHERE outcome = 'added'), count(*) FILTER (WHERE outcome = 'updated'),
       count(*) FILTER (WHERE outcome = 'left'), COALESCE(max(number), 0)
FROM accounts_importrow WHERE job_id = %(job)s
"""


ADDED = """
SELECT address, saved_as FROM accounts_importrow
WHERE job_id = %(job)s AND number > %(after)s AND number <= %(upto)s AND outcome = 'added'
"""


def _keep_out(job: Import, cursor: Any, chunk: dict[str, Any]) -> None:
    """Opt out those who were added by this part of the file and had been erased."""
    cursor.execute(ADDED, chunk)
    keep_out(job.owner_id, job.channel, dict(cursor.fetchall()))


def save(job: Import) -> None:
    """Add or update the recipient of every good row, inside the caller's transaction."""
    names: dict[str, Any] = {
        "job": job.pk,
        "owner": job.owner_id,
        "channel": job.channel,
        "account": job.account_id,
        "tags": job.tags,
    }
    statement = SAVE.format(
        on_existing=UPDATE if job.on_existing == Import.OnExisting.UPDATE else "DO NOTHING"
    )
    tagged = bool(job.tags) or any(column["means"] == "tags" for column in job.columns)
    reporter = Reporter(job.pk)
    with connection.cursor() as cursor:
        cursor.execute(LOCK, names)
        cursor.execute(TAGS, names)
        cursor.execute(COUNT, names)
        last = (cursor.fetchone() or (0,))[-1]
        for after in range(0, last, CHUNK):
            chunk = {**names, "after": after, "upto": after + CHUNK}
            cursor.execute(statement, chunk)
            if tagged:
                cursor.execute(TAG, chunk)
            _keep_out(job, cursor, chunk)
            reporter.tell(rows=min(after + CHUNK, last), share=min((after + CHUNK) / last, 1.0))
        cursor.execute(LEFT, names)
        cursor.execute(COUNT, names)
        added, updated, left, _ = cursor.fetchone() or (0, 0, 0, 0)
    job.counts |= {"added": added, "updated": updated, "left": left}
