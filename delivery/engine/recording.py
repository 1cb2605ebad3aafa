"""Decides whether a message may leave and writes that down (`BEGIN`); writes down its result afterwards (`RECORD`).

Both statements serve the pumps of many accounts at once (`batching.py`): a statement per message would cost more
than the message. So neither waits for anybody's lock: what somebody else holds is left out of the answer, and
the accounts beside it go on. Each row carries the fencing number of its own pump's lease, so that a pump that
lost its lease changes nothing; and the runs' counters move in the same statement as their targets (SPEC R3).

Where targets and runs are named by their ids, `status || ''` keeps the planner off the indexes of those being sent and
running: by its statistics there are none, so it would rather look through all of them than look each up. Nothing that
may be long is joined to another such list: without hashes, which these statements do without (`sql.py`), that takes
the product of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from delivery.engine.claims import KNOWN
from delivery.engine.sql import Query, Rows, array, text_array
from delivery.limits.work_hours import ENDS
from delivery.states import RunStatus, TargetStatus

FARTHEST_AHEAD: Final = timedelta(seconds=1)  # of an intent before its message


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A pump's wish to send one part to one target, when it first wished so, and when the message is to leave.

    `address` is where it is to go: the recipient may have got another one since the target was claimed. `claimed_at`
    names the claim: what a target of a queue says may have been changed since, and then it was claimed again.
    """

    target_id: int
    part: int
    fence: int
    wished_at: datetime
    leaves_at: datetime | None = None  # None: at once
    address: str | None = None  # None: wherever
    account_id: int | None = None  # of the pump; None: whichever has the target
    claimed_at: datetime | None = None  # None: whichever claim it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Leave to send one message: for which intent, which attempt it is, and until when it counts.

    `at` is when the message leaves: at once, or at its time if the intent was written ahead of it. `written` is when
    the intent was written, by this process's clock too; `clock` is the database's clock at that moment.
    """

    target_id: int
    part: int
    fence: int
    attempt: int
    at: datetime
    written: datetime
    clock: datetime
    closes_at: datetime

    def answers(self, intent: Intent) -> bool:
        """Decide whether this is leave for that very intent, and not for one of another pump."""
        return (self.target_id, self.part, self.fence) == (intent.target_id, intent.part, intent.fence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgered:
    """The run, owner, account and action of messages: every row of the ledger repeats them."""

    run_id: int
    owner_id: int
    account_id: int
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The result of one message: the ledger's row, and the target's next state."""

    whose: Ledgered
    fence: int
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
    counts: bool = True  # whether the attempt is held against the recipient
    variant: int | None = None  # which wording of several
    new_person: int = 0  # what it used up of the limits of new people


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
    returned: int  # a part of sent


# Leave to send: its run still runs and is in its window, its account may still send and is still this pump's, its
# recipient may still get it. `begun_at` is the intent, on disk before the message goes. Asked again by the same pump,
# after a lost answer or for a last look (`last_look.py`), it gives the same leave: under one fencing number nobody
# else begins. The window is judged by the later of two clocks, the worker's and the database's. A worker whose clock
# is ahead begins nothing: `begun_at` would say for as long that the message may still be under way.
#
# Every leave names the wish that it answers, by its place in the batch: pumps share the statement, and a pump that
# lost its account can ask for the same target as the one that has it now.
#
# A target may have been handed over to another account since it was claimed: fencing numbers of two accounts may be the
# same, so the account is compared too.
#
# A recipient whose address was edited since gets nothing at the old one; nor does a new person while the service locks
# first contacts. Targets may have been claimed a minute before.
#
# The window ends with the account's own working hours, where these end first. What was claimed before an account
# connected again has permits for its full pace: it is given back.
#
# An intent may be written a moment before its message leaves. `begun_at` is then the time at which it leaves: the
# ledger repeats it, and a message counts on the day on which it left.
HOURS_END: Final = ENDS.format(at="GREATEST(%(now)s, clock_timestamp())")
WANTED: Final = f"""
    SELECT t.id, w.place, w.at, closes.at AS closes_at
    FROM unnest(%(target)s::bigint[], %(part)s::int[], %(fence)s::bigint[], %(wished_at)s::timestamptz[],
                %(at)s::timestamptz[], %(address)s::text[], %(account)s::bigint[], %(claimed_at)s::timestamptz[])
         WITH ORDINALITY AS w(target_id, part, fence, wished_at, at, address, account_id, claimed_at, place)
    JOIN delivery_runtarget t ON t.id = w.target_id
    JOIN delivery_run r ON r.id = t.run_id
    JOIN accounts_account a ON a.id = t.account_id
    JOIN accounts_recipient p ON p.id = t.recipient_id
    CROSS JOIN LATERAL (SELECT LEAST(r.closes_at, {HOURS_END}) AS at) closes
    WHERE t.parts_done = w.part AND t.status || '' = 'sending' AND t.fence = w.fence
      AND t.account_id = COALESCE(w.account_id, t.account_id)
      AND (t.begun_at IS NULL OR t.begun_at >= w.wished_at)
      AND r.status || '' = 'running' AND closes.at > GREATEST(%(now)s, clock_timestamp()) + %(guard)s::interval
      AND clock_timestamp() >= %(now)s - %(tolerance)s::interval
      AND a.fence = w.fence AND a.status = 'active'
      AND (a.reconnected_at IS NULL OR t.claimed_at >= a.reconnected_at)
      AND p.opted_out_at IS NULL AND p.blocked_at IS NULL AND p.archived_at IS NULL
      AND p.address = COALESCE(w.address, p.address) AND t.claimed_at = COALESCE(w.claimed_at, t.claimed_at)
      AND (COALESCE(a.first_contacts_until <= clock_timestamp(), true) OR {KNOWN})
      AND p.undeliverable_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM accounts_sendingstop s
                      WHERE s.ended_at IS NULL AND COALESCE(s.owner_id, a.owner_id) = a.owner_id)
"""  # noqa: S608 - made of constants
MAY_BEGIN: Final = f"SELECT EXISTS ({WANTED})"
BEGIN: Final = f"""
WITH wanted AS MATERIALIZED (
    {WANTED}
    FOR NO KEY UPDATE OF t SKIP LOCKED
)
UPDATE delivery_runtarget t SET begun_at = wanted.at, attempts = t.attempts + (t.begun_at IS NULL)::int
FROM wanted WHERE t.id = wanted.id
RETURNING wanted.place, t.id, t.parts_done, t.fence, t.attempts, clock_timestamp(), wanted.closes_at
"""  # noqa: S608 - made of constants


def begin(
    intents: Sequence[Intent], *, now: datetime, guard: timedelta, tolerance: timedelta
) -> Query[list[Begun | None]]:
    """Return the statement that writes down the intents, and answers each in its place with leave to send or None.

    A window has to stay open for `guard` longer than now, and `now` is at most `tolerance` ahead of the database.
    """
    moments = [_leaves(intent, now) for intent in intents]
    arguments = _wishes(intents, moments, now=now, guard=guard, tolerance=tolerance)

    def read(rows: Rows) -> list[Begun | None]:
        found = {row[0]: _begun(row, at=moments[row[0] - 1], written=now) for row in rows}
        return [found.get(place) for place in range(1, len(intents) + 1)]

    return Query(sql=BEGIN, arguments=arguments, read=read)


def may_begin(intent: Intent, *, now: datetime, guard: timedelta, tolerance: timedelta) -> Query[bool]:
    """Return the statement that says whether an intent would get leave now; it writes nothing."""
    arguments = _wishes([intent], [_leaves(intent, now)], now=now, guard=guard, tolerance=tolerance)
    return Query(sql=MAY_BEGIN, arguments=arguments, read=lambda rows: bool(rows[0][0]))


def _wishes(
    intents: Sequence[Intent],
    moments: Sequence[datetime],
    *,
    now: datetime,
    guard: timedelta,
    tolerance: timedelta,
) -> dict[str, Any]:
    return {
        "target": array(intent.target_id for intent in intents),
        "part": array(intent.part for intent in intents),
        "fence": array(intent.fence for intent in intents),
        "wished_at": array(intent.wished_at for intent in intents),
        "at": array(moments),
        "address": text_array(intent.address for intent in intents),
        "account": array(intent.account_id for intent in intents),
        "claimed_at": array(intent.claimed_at for intent in intents),
        "now": now,
        "guard": guard,
        "tolerance": tolerance,
    }


def _leaves(intent: Intent, now: datetime) -> datetime:
    """Return when a message leaves. A clock that was set back meanwhile must not date it far ahead."""
    return max(now, min(intent.leaves_at or now, now + FARTHEST_AHEAD))


def _begun(row: tuple[Any, ...], *, at: datetime, written: datetime) -> Begun:
    _, target_id, part, fence, attempt, clock, closes_at = row
    return Begun(
        target_id=target_id,
        part=part,
        fence=fence,
        attempt=attempt,
        at=at,
        written=written,
        clock=clock,
        closes_at=closes_at,
    )


# A report of failure may come before the answer to its send: the target has it, and counts as returned once it is sent.
# The ledger gets its row whatever became of the lease: the message did leave. The target moves only while it
# still carries its pump's fencing number. The runs' own change reads `written`, so that it comes last: once a run
# is changed, `locked` finds nothing, nor does what reads it only then.
RECORD: Final = """
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r WHERE r.id = ANY(%(runs)s::bigint[]) ORDER BY r.id FOR NO KEY UPDATE {wait}
), news AS MATERIALIZED (
    SELECT n.* FROM unnest(
        %(run_id)s::bigint[], %(owner_id)s::bigint[], %(account_id)s::bigint[], %(action)s::text[],
        %(fence)s::bigint[], %(target_id)s::bigint[], %(part)s::int[], %(attempt)s::int[],
        %(began_at)s::timestamptz[], %(took_ms)s::int[], %(outcome)s::text[], %(provider_id)s::text[],
        %(error)s::text[], %(status)s::text[], %(parts_done)s::int[], %(not_before)s::timestamptz[],
        %(counts)s::boolean[], %(variant)s::smallint[], %(new_person)s::smallint[]
    ) AS n(run_id, owner_id, account_id, action, fence, target_id, part, attempt,
           began_at, took_ms, outcome, provider_id, error, status, parts_done, not_before, counts, variant,
           new_person)
    WHERE n.run_id = ANY(ARRAY(SELECT id FROM locked))
), moved AS (
    UPDATE delivery_runtarget t
    SET status = n.status,
        parts_done = n.parts_done,
        attempts = CASE WHEN n.outcome = 'sent' THEN 0
                        WHEN n.counts THEN t.attempts ELSE GREATEST(t.attempts - 1, 0) END,
        not_before = COALESCE(n.not_before, t.not_before),
        error = n.error,
        provider_id = CASE WHEN n.provider_id = '' THEN t.provider_id ELSE n.provider_id END,
        earlier_ids = CASE WHEN n.provider_id IN ('', t.provider_id) THEN t.earlier_ids
                           WHEN n.part > 0 AND t.provider_id <> '' THEN array_append(t.earlier_ids, t.provider_id)
                      END,
        begun_at = NULL,
        new_person = CASE WHEN n.status = 'sending' AND n.new_person > 0 THEN 3 ELSE 0 END,
        claimed_at = CASE WHEN n.status = 'sending' THEN t.claimed_at END,
        settled_at = CASE WHEN n.status IN ('pending', 'sending') THEN NULL ELSE %(now)s END
    FROM news n
    WHERE t.id = n.target_id AND t.status || '' = 'sending' AND t.fence = n.fence AND t.account_id = n.account_id
    RETURNING n.run_id, n.status, t.returned_at IS NOT NULL AS returned
), written AS (
    INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt,
                                  outcome, provider_id, error, took_ms, variant, new_person)
    SELECT n.began_at, n.owner_id, n.account_id, n.run_id, n.target_id, n.action, n.part, n.attempt,
           n.outcome, n.provider_id, n.error, n.took_ms, n.variant, n.new_person
    FROM news n {unless}
    RETURNING 1
), counts AS (
    SELECT run_id,
           count(*) FILTER (WHERE status <> 'sending') AS done,
           count(*) FILTER (WHERE status = 'pending') AS pending,
           count(*) FILTER (WHERE status = 'sent') AS sent,
           count(*) FILTER (WHERE status = 'sent' AND returned) AS returned,
           count(*) FILTER (WHERE status = 'failed') AS failed,
           count(*) FILTER (WHERE status = 'unconfirmed') AS unconfirmed
    FROM (SELECT id AS run_id, 'sending' AS status, false AS returned FROM locked
          UNION ALL SELECT run_id, status, returned FROM moved) each
    GROUP BY run_id
)
UPDATE delivery_run r
SET sending = r.sending - c.done, pending = r.pending + c.pending, sent = r.sent + c.sent,
    failed = r.failed + c.failed, unconfirmed = r.unconfirmed + c.unconfirmed, returned = r.returned + c.returned
FROM counts c, (SELECT count(*) FROM written) w WHERE r.id = c.run_id
RETURNING r.id, r.status, r.total, r.pending, r.sending, r.sent, r.failed, r.skipped, r.unconfirmed,
          r.canceled_at IS NOT NULL, r.returned
"""
RECORD_AT_ONCE: Final = RECORD.format(wait="SKIP LOCKED", unless="")
# After an answer that was lost with its connection, the ledger may have the rows already.
RECORD_SURELY: Final = RECORD.format(
    wait="",
    unless="""WHERE NOT EXISTS (
        SELECT 1 FROM activity_attempt known
        WHERE known.target_id = n.target_id AND known.part = n.part AND known.at = n.began_at
    )""",
)

# Which account talked with whom (SPEC S7), in the transaction of the record, after its locks. A part of the statement
# above it cannot be: PostgreSQL 18 crashes where it has to look again at a run that somebody changed meanwhile, and an
# INSERT with ON CONFLICT is in the same statement.
TALKED: Final = """
INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT t.recipient_id, n.account_id, max(n.began_at)
FROM unnest(%(target_id)s::bigint[], %(account_id)s::bigint[], %(began_at)s::timestamptz[], %(outcome)s::text[],
            %(part)s::int[]) AS n(target_id, account_id, began_at, outcome, part)
JOIN delivery_runtarget t ON t.id = n.target_id
WHERE n.outcome = 'sent' AND n.part = 0
GROUP BY t.recipient_id, n.account_id ORDER BY t.recipient_id, n.account_id
ON CONFLICT (recipient_id, account_id) DO UPDATE SET talked_at = EXCLUDED.talked_at
WHERE COALESCE(accounts_contact.talked_at < EXCLUDED.talked_at, true)
"""

WHOSE: Final = ("run_id", "owner_id", "account_id")
EACH: Final = (
    "fence",
    "target_id",
    "part",
    "attempt",
    "began_at",
    "took_ms",
    "parts_done",
    "not_before",
    "counts",
    "variant",
    "new_person",
)
WORDS: Final = ("outcome", "provider_id", "error")


def record(landings: Sequence[Landing], *, now: datetime) -> Query[dict[int, Counts]]:
    """Return the statement that writes down results: targets, ledger rows and counters, all or none.

    It answers with the runs that were free; nothing is written for the others.
    """
    return _record(RECORD_AT_ONCE, landings, now)


def record_surely(landings: Sequence[Landing], *, now: datetime) -> Query[dict[int, Counts]]:
    """Return the same for landings that may have been recorded before; it waits for the locks of their runs."""
    return _record(RECORD_SURELY, landings, now)


def _record(statement: str, landings: Sequence[Landing], now: datetime) -> Query[dict[int, Counts]]:
    arguments: dict[str, Any] = {
        "now": now,
        "runs": array(sorted({landing.whose.run_id for landing in landings})),
        "action": text_array(landing.whose.action for landing in landings),
        "status": text_array(landing.status.value for landing in landings),
        **{name: array(getattr(landing.whose, name) for landing in landings) for name in WHOSE},
        **{name: array(getattr(landing, name) for landing in landings) for name in EACH},
        **{name: text_array(getattr(landing, name) for landing in landings) for name in WORDS},
    }
    return Query(sql=statement, arguments=arguments, read=_counts, then=TALKED)


def _counts(rows: Rows) -> dict[int, Counts]:
    return {row[0]: _count(row) for row in rows}


def _count(row: tuple[Any, ...]) -> Counts:
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
        returned=row[10],
    )
