"""Puts right what a dead pump left behind (SPEC R7, R8).

A pump that takes over has a higher fencing number, so the old one can begin nothing any more. A target
that it had claimed and not begun goes back to pending. A message that it had begun may have left: with a key the
service takes, it is sent again with the same key; without one it is `unconfirmed`, once it can no longer be under
way. A run of which nothing was left when the pump died has yet to be settled.
"""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from delivery import conf, lifecycle, live
from delivery.engine.lease import Lease
from delivery.engine.sql import execute

# As in recording.RECORD, the runs are changed last.
RECLAIM = """
WITH locked AS MATERIALIZED (
    SELECT r.id, r.owner_id, r.action, %(files_inside)s AND r.parts @> '[{"kind": "media"}]' AS with_file
    FROM delivery_run r
    WHERE r.id IN (
        SELECT t.run_id FROM delivery_runtarget t
        WHERE t.account_id = %(account)s AND t.status = 'sending' AND t.fence < %(fence)s
    )
    ORDER BY r.id FOR NO KEY UPDATE
), left_over AS MATERIALIZED (
    SELECT t.id, t.begun_at,
           CASE WHEN t.begun_at IS NULL OR (%(idempotent)s AND t.attempts < %(most)s) THEN 'pending'
                ELSE 'unconfirmed' END AS becomes
    FROM locked JOIN delivery_runtarget t ON t.run_id = locked.id
    WHERE t.account_id = %(account)s AND t.status = 'sending' AND t.fence < %(fence)s
      AND (t.begun_at IS NULL OR %(idempotent)s
           OR t.begun_at < %(now)s - CASE WHEN locked.with_file THEN %(longest_with_file)s ELSE %(longest)s END)
    FOR UPDATE OF t
), moved AS (
    UPDATE delivery_runtarget t
    SET status = o.becomes, claimed_at = NULL, begun_at = NULL,
        error = CASE WHEN o.begun_at IS NULL THEN t.error ELSE 'interrupted while sending' END,
        settled_at = CASE WHEN o.becomes = 'pending' THEN NULL ELSE %(now)s END
    FROM left_over o WHERE t.id = o.id
    RETURNING t.id, t.run_id, t.parts_done, t.attempts, o.begun_at, o.becomes, t.new_person
), written AS (
    INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt,
                                  outcome, provider_id, error, took_ms, new_person)
    SELECT m.begun_at, l.owner_id, %(account)s, m.run_id, m.id, l.action, m.parts_done, m.attempts,
           'unknown', '', 'interrupted while sending',
           GREATEST(0, EXTRACT(EPOCH FROM LEAST(
               %(now)s - m.begun_at, CASE WHEN l.with_file THEN %(longest_with_file)s ELSE %(longest)s END
           )) * 1000)::int, m.new_person
    FROM moved m JOIN locked l ON l.id = m.run_id WHERE m.begun_at IS NOT NULL
    RETURNING 1
), counts AS (
    SELECT run_id, count(*) AS moved, count(*) FILTER (WHERE becomes = 'pending') AS pending
    FROM moved GROUP BY run_id
)
UPDATE delivery_run r
SET sending = r.sending - c.moved, pending = r.pending + c.pending,
    unconfirmed = r.unconfirmed + c.moved - c.pending
FROM counts c, (SELECT count(*) FROM written) w WHERE r.id = c.run_id
RETURNING r.id, r.owner_id
"""

UNSETTLED = """
SELECT r.id FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
WHERE share.account_id = %(account)s AND share.open AND r.status || '' IN ('running', 'paused')
  AND r.sending = 0 AND (r.pending = 0 OR r.canceled_at IS NOT NULL)
"""


def reclaim(held: Lease, *, idempotent: bool, files_inside: bool) -> None:
    """Take back the targets of the account that older pumps hold, and settle the runs that they left.

    `files_inside` says that files go inside their messages, which takes longer than to name them.
    """
    arguments: dict[str, Any] = {
        "account": held.account_id,
        "fence": held.fence,
        "idempotent": idempotent,
        "most": settings.MAX_ATTEMPTS,
        "now": datetime.now(UTC),
        "files_inside": files_inside,
        "longest": conf.longest_send(with_file=False),
        "longest_with_file": conf.longest_send(with_file=True),
    }
    for run_id, owner_id in execute(RECLAIM, arguments):
        live.run_changed(run_id, owner_id)
    for (run_id,) in execute(UNSETTLED, {"account": held.account_id}):
        lifecycle.settle(run_id)
