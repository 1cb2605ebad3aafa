"""The engine's statements: choose a run, claim targets, begin, let go, record.

Each is one round trip. Each locks the run before its targets, as `lifecycle.py` does, so that none can
deadlock with another; each that changes targets moves the run's counters in the same statement, so that they
add up at every commit (SPEC R3); and each carries the fencing number of the pump's lease, so that a pump that
lost its lease changes nothing.

Where targets are named by their ids, `status || ''` keeps the planner off the index of those being sent: by its
statistics there are none, so it would rather look through all of them than look each up.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delivery.statements import execute
from delivery.states import RunStatus, TargetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The run that an account serves next, and when its first pending target is due."""

    run_id: int
    closes_at: datetime
    not_before: datetime
    sent: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A target in a pump's hands, with what rendering needs of its recipient."""

    target_id: int
    attempts: int
    parts_done: int
    address: str
    name: str
    fields: dict[str, object]

    @property
    def values(self) -> dict[str, object]:
        return {"name": self.name, "address": self.address, **self.fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What became of one message: the ledger's row, and the target's next state."""

    target_id: int
    part: int
    attempt: int
    began_at: datetime
    took_ms: int
    outcome: str
    provider_id: str
    error: str
    status: TargetStatus  # SENDING: its next part follows
    parts_done: int
    not_before: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A run's counters right after a change."""

    run_id: int
    status: RunStatus
    total: int
    pending: int
    sending: int
    sent: int
    failed: int
    skipped: int
    unconfirmed: int
    canceled: bool


NEXT_RUN = """
SELECT r.id, r.closes_at, first.not_before, r.sent, r.failed
FROM delivery_runaccount share
JOIN delivery_run r ON r.id = share.run_id
CROSS JOIN LATERAL (
    SELECT t.not_before FROM delivery_runtarget t
    WHERE t.account_id = share.account_id AND t.run_id = r.id AND t.status = 'pending'
    ORDER BY t.not_before, t.id LIMIT 1
) first
WHERE share.account_id = %(account)s AND share.open AND r.status = 'running' AND r.closes_at > %(sendable)s
ORDER BY (first.not_before > %(now)s),
         CASE WHEN first.not_before > %(now)s THEN first.not_before END,
         r.priority DESC, r.fired_at, r.id
LIMIT 1
"""


def next_run(account_id: int, *, now: datetime, sendable: datetime) -> NextRun | None:
    """By priority, then firing, among the runs with a target due now; else the one whose target is due first."""
    rows = execute(NEXT_RUN, {"account": account_id, "now": now, "sendable": sendable})
    if not rows:
        return None
    (row,) = rows
    return NextRun(run_id=row[0], closes_at=row[1], not_before=row[2], sent=row[3], failed=row[4])


CLAIM = """
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r
    WHERE r.id = %(run)s AND r.status = 'running' AND EXISTS (
        SELECT 1 FROM accounts_account a
        WHERE a.id = %(account)s AND a.fence = %(fence)s AND a.status = 'active'
    )
    FOR NO KEY UPDATE OF r
), picked AS MATERIALIZED (
    SELECT t.id FROM delivery_runtarget t
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND t.not_before <= %(now)s
      AND EXISTS (SELECT 1 FROM locked)
    ORDER BY t.not_before, t.id LIMIT %(most)s
    FOR UPDATE OF t SKIP LOCKED
), claimed AS (
    UPDATE delivery_runtarget t
    SET status = 'sending', fence = %(fence)s, claimed_at = %(now)s, begun_at = NULL
    FROM picked WHERE t.id = picked.id
    RETURNING t.id, t.recipient_id, t.not_before, t.attempts, t.parts_done
), counted AS (
    UPDATE delivery_run r SET pending = r.pending - n.claimed, sending = r.sending + n.claimed
    FROM (SELECT count(*) AS claimed FROM claimed) n
    WHERE r.id = %(run)s AND n.claimed > 0
)
SELECT c.id, c.attempts, c.parts_done, p.address, p.name, p.fields
FROM claimed c JOIN accounts_recipient p ON p.id = c.recipient_id
ORDER BY c.not_before, c.id
"""


def claim(run_id: int, account_id: int, *, fence: int, most: int, now: datetime) -> list[Claimed]:
    """Up to `most` due targets of the run, now in this pump's hands."""
    arguments: dict[str, Any] = {
        "run": run_id,
        "account": account_id,
        "fence": fence,
        "most": most,
        "now": now,
    }
    return [
        Claimed(
            target_id=row[0],
            attempts=row[1],
            parts_done=row[2],
            address=row[3],
            name=row[4],
            fields=json.loads(row[5]),
        )
        for row in execute(CLAIM, arguments)
    ]


# The last look before a message leaves: its run still runs and is in its window, its account may still send and
# is still this pump's, its recipient has not opted out. `begun_at` is the intent, on disk before the message goes.
# Asked again after a lost answer, it gives the same one.
BEGIN = """
UPDATE delivery_runtarget t SET begun_at = %(now)s, attempts = t.attempts + (t.begun_at IS NULL)::int
FROM unnest(%(targets)s::bigint[], %(parts)s::int[]) AS w(id, part),
     delivery_run r, accounts_account a, accounts_recipient p
WHERE t.id = w.id AND t.parts_done = w.part AND t.status || '' = 'sending' AND t.fence = %(fence)s
  AND (t.begun_at IS NULL OR t.begun_at = %(now)s)
  AND r.id = t.run_id AND r.status = 'running' AND r.closes_at > %(sendable)s
  AND a.id = t.account_id AND a.fence = %(fence)s AND a.status = 'active'
  AND p.id = t.recipient_id AND p.opted_out_at IS NULL AND p.blocked_at IS NULL
RETURNING t.id, t.attempts
"""


def begin(parts: Mapping[int, int], *, fence: int, now: datetime, sendable: datetime) -> dict[int, int]:
    """Write down the intent to send a part to each target; answers with those that may go, each with the number of
    its attempt."""
    arguments: dict[str, Any] = {
        "targets": list(parts),
        "parts": list(parts.values()),
        "fence": fence,
        "now": now,
        "sendable": sendable,
    }
    rows = execute(BEGIN, arguments)
    return {row[0]: row[1] for row in rows}


LET_GO = """
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r
    WHERE r.id IN (SELECT t.run_id FROM delivery_runtarget t WHERE t.id = ANY(%(targets)s::bigint[]))
    ORDER BY r.id FOR NO KEY UPDATE
), moved AS (
    UPDATE delivery_runtarget t
    SET status = CASE WHEN p.opted_out_at IS NULL AND p.blocked_at IS NULL THEN 'pending' ELSE 'skipped' END,
        error = CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out'
                     WHEN p.blocked_at IS NOT NULL THEN 'blocked' ELSE t.error END,
        settled_at = CASE WHEN p.opted_out_at IS NULL AND p.blocked_at IS NULL THEN NULL ELSE %(now)s END,
        claimed_at = NULL
    FROM locked, accounts_recipient p
    WHERE t.run_id = locked.id AND t.id = ANY(%(targets)s::bigint[]) AND p.id = t.recipient_id
      AND t.status || '' = 'sending' AND t.fence = %(fence)s AND t.begun_at IS NULL
    RETURNING t.run_id, t.status
), counts AS (
    SELECT run_id, count(*) AS moved, count(*) FILTER (WHERE status = 'pending') AS pending FROM moved GROUP BY run_id
)
UPDATE delivery_run r
SET sending = r.sending - c.moved, pending = r.pending + c.pending, skipped = r.skipped + c.moved - c.pending
FROM counts c WHERE r.id = c.run_id
RETURNING r.id
"""


def let_go(targets: Iterable[int], *, fence: int, now: datetime) -> list[int]:
    """Give back what was claimed and not begun; who opted out meanwhile is skipped. Answers with the runs."""
    return [row[0] for row in execute(LET_GO, {"targets": list(targets), "fence": fence, "now": now})]


# The ledger gets its row whatever became of the lease: the message did leave. The target moves only while it
# still carries this pump's fencing number. The run's own change reads `written`, so that it comes last: once the run
# is changed, `locked` finds nothing, nor does what reads it only then.
RECORD = """
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r WHERE r.id = %(run)s FOR NO KEY UPDATE
), news AS MATERIALIZED (
    SELECT * FROM locked, unnest(
        %(target)s::bigint[], %(part)s::int[], %(attempt)s::int[], %(began_at)s::timestamptz[], %(took_ms)s::int[],
        %(outcome)s::text[], %(provider_id)s::text[], %(error)s::text[], %(status)s::text[],
        %(parts_done)s::int[], %(not_before)s::timestamptz[]
    ) AS n(target_id, part, attempt, began_at, took_ms, outcome, provider_id, error, status, parts_done, not_before)
), moved AS (
    UPDATE delivery_runtarget t
    SET status = n.status,
        parts_done = n.parts_done,
        attempts = CASE WHEN n.outcome = 'sent' THEN 0 ELSE t.attempts END,
        not_before = COALESCE(n.not_before, t.not_before),
        error = n.error,
        provider_id = CASE WHEN n.provider_id = '' THEN t.provider_id ELSE n.provider_id END,
        begun_at = NULL,
        claimed_at = CASE WHEN n.status = 'sending' THEN t.claimed_at END,
        settled_at = CASE WHEN n.status IN ('pending', 'sending') THEN NULL ELSE %(now)s END
    FROM news n
    WHERE t.id = n.target_id AND t.status || '' = 'sending' AND t.fence = %(fence)s
    RETURNING n.status
), written AS (
    INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt,
                                  outcome, provider_id, error, took_ms)
    SELECT n.began_at, %(owner)s, %(account)s, %(run)s, n.target_id, %(action)s, n.part, n.attempt,
           n.outcome, n.provider_id, n.error, n.took_ms
    FROM news n
    RETURNING 1
), counts AS (
    SELECT count(*) FILTER (WHERE status <> 'sending') AS done,
           count(*) FILTER (WHERE status = 'pending') AS pending,
           count(*) FILTER (WHERE status = 'sent') AS sent,
           count(*) FILTER (WHERE status = 'failed') AS failed,
           count(*) FILTER (WHERE status = 'unconfirmed') AS unconfirmed
    FROM moved
)
UPDATE delivery_run r
SET sending = r.sending - c.done, pending = r.pending + c.pending, sent = r.sent + c.sent,
    failed = r.failed + c.failed, unconfirmed = r.unconfirmed + c.unconfirmed
FROM counts c, (SELECT count(*) FROM written) w WHERE r.id = %(run)s
RETURNING r.id, r.status, r.total, r.pending, r.sending, r.sent, r.failed, r.skipped, r.unconfirmed,
          r.canceled_at IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgered:
    """Whose messages these are: what every row of the ledger repeats."""

    run_id: int
    owner_id: int
    account_id: int
    action: str


def record(landings: Sequence[Landing], whose: Ledgered, *, fence: int, now: datetime) -> Counts:
    """Write down what became of messages of one run: targets, ledger rows and counters, all or none."""
    arguments: dict[str, Any] = {
        "run": whose.run_id,
        "owner": whose.owner_id,
        "account": whose.account_id,
        "action": whose.action,
        "fence": fence,
        "now": now,
        "target": [landing.target_id for landing in landings],
        "status": [landing.status.value for landing in landings],
    }
    for name in (
        "part",
        "attempt",
        "began_at",
        "took_ms",
        "outcome",
        "provider_id",
        "error",
        "parts_done",
        "not_before",
    ):
        arguments[name] = [getattr(landing, name) for landing in landings]
    (row,) = execute(RECORD, arguments)
    return _counts(row)


def _counts(row: tuple[Any, ...]) -> Counts:
    return Counts(
        run_id=row[0],
        status=RunStatus(row[1]),
        total=row[2],
        pending=row[3],
        sending=row[4],
        sent=row[5],
        failed=row[6],
        skipped=row[7],
        unconfirmed=row[8],
        canceled=row[9],
    )
