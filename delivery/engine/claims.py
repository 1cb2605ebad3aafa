"""The engine's statements for one account: choose a run, claim targets, let go of them.

Each is one round trip. Each locks the run before its targets, as `lifecycle` does, so that none can
deadlock with another; each that changes targets moves the run's counters in the same statement, so that they
add up at every commit (SPEC R3); and each carries the fencing number of the pump's lease, so that a pump that
lost its lease changes nothing. What is written around each message is in `recording.py`.

Where targets and runs are named by their ids, `status || ''` keeps the planner off the indexes of those being sent and
running: by its statistics there are none, so it would rather look through all of them than look each up.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from delivery.engine.newness import IS_NEW, LAST_MET, LEVEL_OF, Newness, nobody_new
from delivery.engine.sql import execute
from delivery.parts import OwnContent, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Targets by their planned time: from `since` on, and before `before`."""

    since: datetime | None = None
    before: datetime | None = None


WHENEVER = Planned()
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The run that an account serves next, and when its first pending target is due."""

    run_id: int
    action: str
    closes_at: datetime
    not_before: datetime
    sent: int  # and not returned
    failed: int  # those returned and in doubt included, as the error rate counts them (P6, L2)
    new_person: int = 0  # whether that target was planned as a new person
    on_time_first: bool = False  # its overdue targets leave slowly (P9), whatever the account's profile says


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A target that a pump has claimed, with the values of its recipient for rendering."""

    target_id: int
    attempts: int
    parts_done: int
    address: str
    name: str
    fields: dict[str, object]
    new_person: int = 0  # what a message to them uses up: `newness.LEVEL`
    met: datetime | None = None  # when the week counted them last
    stranger: bool = False  # a person to whom this account never wrote, and who never wrote to it
    claimed_at: datetime | None = None
    content: OwnContent | None = None  # of its own, which only an item of a queue has

    @property
    def values(self) -> dict[str, object]:
        own = self.content.values if self.content is not None else {}
        return values_of(self) | own


NEXT_RUN = """
SELECT r.id, r.action, r.closes_at, first.not_before, r.sent - r.returned, r.failed + r.unconfirmed + r.returned,
       r.on_time_first, first.new_person
FROM delivery_runaccount share
JOIN delivery_run r ON r.id = share.run_id
CROSS JOIN LATERAL (
    SELECT t.not_before, t.new_person FROM delivery_runtarget t
    WHERE t.account_id = share.account_id AND t.run_id = r.id AND t.status = 'pending'
      AND t.not_before >= CASE WHEN r.on_time_first THEN %(fresh)s ELSE %(since)s END AND t.not_before < %(before)s
    ORDER BY t.not_before, t.id LIMIT 1
) first
WHERE (r.on_time_first OR NOT %(slow)s)
  AND share.account_id = %(account)s AND share.open AND r.status || '' = 'running' AND r.closes_at > %(sendable)s
  AND NOT EXISTS (SELECT 1 FROM accounts_sendingstop s
                  WHERE s.ended_at IS NULL AND COALESCE(s.owner_id, r.owner_id) = r.owner_id)
ORDER BY (first.not_before > %(now)s),
         CASE WHEN first.not_before > %(now)s THEN first.not_before END,
         r.priority DESC, r.on_time_first DESC, r.fired_at, r.id
LIMIT 1
"""


def next_run(
    account_id: int,
    *,
    now: datetime,
    sendable: datetime,
    planned: Planned = WHENEVER,
    fresh: datetime | None = None,
    slow: bool = False,
) -> NextRun | None:
    """Return the next run: by priority, then firing, among those with a target due now; else the one due first.

    Of runs that send on-time work first, only targets planned from `fresh` on count; with `slow` no other runs do.
    """
    span = _span(planned)
    arguments = {
        "account": account_id,
        "now": now,
        "sendable": sendable,
        **span,
        "fresh": max(fresh or span["since"], span["since"]),
        "slow": slow,
    }
    rows = execute(NEXT_RUN, arguments)
    if not rows:
        return None
    ((run_id, action, closes_at, not_before, sent, failed, on_time_first, new_person),) = rows
    return NextRun(
        run_id=run_id,
        action=action,
        closes_at=closes_at,
        not_before=not_before,
        sent=sent,
        failed=failed,
        on_time_first=on_time_first,
        new_person=new_person,
    )


def _span(planned: Planned) -> dict[str, datetime]:
    return {"since": planned.since or EARLIEST, "before": planned.before or LATEST}


# Whether the account of the target `t` may write to the recipient `p` while first contacts are locked. A message that
# was reported as not delivered does not make its recipient known. LIMIT keeps PostgreSQL from reading all sent targets
# at once, as it does for a mere EXISTS that it expects to ask often.
KNOWN = """
(p.kind IN ('group', 'room') OR p.last_inbound_at IS NOT NULL OR (
    SELECT true FROM delivery_runtarget earlier
    WHERE earlier.recipient_id = t.recipient_id AND earlier.account_id = t.account_id
      AND earlier.status = 'sent' AND earlier.error = '' AND earlier.returned_at IS NULL LIMIT 1
) IS NOT NULL)
"""
CLAIM = f"""
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r
    WHERE r.id = %(run)s AND r.status || '' = 'running' AND EXISTS (
        SELECT 1 FROM accounts_account a
        WHERE a.id = %(account)s AND a.fence = %(fence)s AND a.status = 'active'
    )
    FOR NO KEY UPDATE OF r
), picked AS MATERIALIZED (
    SELECT t.id, t.recipient_id, t.account_id, t.not_before FROM delivery_runtarget t
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND t.not_before <= %(now)s
      AND t.not_before >= %(since)s AND t.not_before < %(before)s AND EXISTS (SELECT 1 FROM locked)
    ORDER BY t.not_before, t.id LIMIT %(most)s
    FOR UPDATE OF t SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT t.id, t.not_before, ({LEVEL_OF}) AS level, met.last, (%(counts_chats)s AND NOT {KNOWN}) AS new_chat
    FROM picked t JOIN accounts_recipient p ON p.id = t.recipient_id
    CROSS JOIN LATERAL (SELECT CASE WHEN %(counts_people)s AND {IS_NEW} THEN {LAST_MET} END AS last) met
), chosen AS MATERIALIZED (
    SELECT id, level, last, new_chat,
           count(*) FILTER (WHERE level IN (1, 2)) OVER (ORDER BY not_before, id) AS people,
           count(*) FILTER (WHERE new_chat) OVER (ORDER BY not_before, id) AS chats,
           count(*) FILTER (WHERE level = 2) OVER (ORDER BY not_before, id) AS anew
    FROM judged
), claimed AS (
    UPDATE delivery_runtarget t
    SET status = 'sending', fence = %(fence)s, claimed_at = %(now)s, begun_at = NULL, new_person = chosen.level
    FROM chosen WHERE t.id = chosen.id AND (
        chosen.level IN (0, 3) OR (chosen.people <= %(most_new)s AND (chosen.level = 1 OR chosen.anew <= %(most_anew)s))
    ) AND (NOT chosen.new_chat OR chosen.chats <= %(most_chats)s)
    RETURNING t.id, t.recipient_id, t.not_before, t.attempts, t.parts_done, t.new_person, chosen.last
), counted AS (
    UPDATE delivery_run r SET pending = r.pending - n.claimed, sending = r.sending + n.claimed
    FROM (SELECT count(*) AS claimed FROM claimed) n
    WHERE r.id = %(run)s AND n.claimed > 0
)
SELECT c.id, c.attempts, c.parts_done, p.address, p.name, p.fields,
       p.kind = 'person' AND p.last_inbound_at IS NULL AND c.parts_done = 0 AND NOT EXISTS (
           SELECT 1 FROM delivery_runtarget earlier
           WHERE earlier.recipient_id = p.id AND earlier.account_id = %(account)s AND earlier.status = 'sent'
       ), c.new_person, CASE WHEN c.new_person IN (1, 3) THEN c.last END
FROM claimed c JOIN accounts_recipient p ON p.id = c.recipient_id
ORDER BY c.not_before, c.id
"""  # noqa: S608 - made of constants


def claim(
    run_id: int,
    account_id: int,
    *,
    fence: int,
    most: int,
    now: datetime,
    planned: Planned = WHENEVER,
    who: Newness | None = None,
    most_chats: int | None = None,
) -> list[Claimed]:
    """Claim up to `most` due targets of the run for this pump, and return them.

    `who` says who is new, and how many of these may be among them; without it nobody is. `most_chats` are the new chats
    that the service's own quota allows; None is any number.
    """
    who = who or nobody_new(account_id, now)
    arguments: dict[str, Any] = {
        "run": run_id,
        "account": account_id,
        "fence": fence,
        "most": most,
        "most_anew": most if who.most_anew is None else who.most_anew,
        "counts_chats": most_chats is not None,
        "most_chats": most if most_chats is None else most_chats,
        "most_new": most if who.most_new is None else who.most_new,
        "now": now,
        **who.arguments,
        **_span(planned),
    }
    return [
        Claimed(
            target_id=row[0],
            attempts=row[1],
            parts_done=row[2],
            address=row[3],
            name=row[4],
            fields=json.loads(row[5]),
            stranger=row[6],
            new_person=row[7],
            met=row[8],
            claimed_at=now,
        )
        for row in execute(CLAIM, arguments)
    ]


# Whether a message to the target `t` may have arrived: an attempt at its present part has no known result. The same as
# `lifecycle.in_doubt`. LIMIT keeps PostgreSQL from reading all such attempts at once.
MAY_HAVE_ARRIVED = """
(SELECT true FROM activity_attempt tried
 WHERE tried.target_id = t.id AND tried.part >= t.parts_done AND tried.outcome = 'unknown' LIMIT 1) IS NOT NULL
"""
LET_GO = f"""
WITH locked AS MATERIALIZED (
    SELECT r.id FROM delivery_run r
    WHERE r.id IN (SELECT t.run_id FROM delivery_runtarget t WHERE t.id = ANY(%(targets)s::bigint[]))
    ORDER BY r.id FOR NO KEY UPDATE
), moved AS (
    UPDATE delivery_runtarget t
    SET status = CASE WHEN no.why = '' THEN 'pending' WHEN {MAY_HAVE_ARRIVED} THEN 'unconfirmed'
                 ELSE 'skipped' END,
        error = CASE WHEN no.why = '' OR {MAY_HAVE_ARRIVED} THEN t.error ELSE no.why END,
        settled_at = CASE WHEN no.why = '' THEN NULL ELSE %(now)s END,
        claimed_at = NULL,
        attempts = t.attempts - (t.begun_at IS NOT NULL)::int,
        begun_at = NULL,
        not_before = COALESCE((
            SELECT GREATEST(t.not_before, a.first_contacts_until) FROM accounts_account a
            WHERE a.id = t.account_id AND a.first_contacts_until > %(now)s AND NOT {KNOWN}
        ), t.not_before)
    FROM accounts_recipient p, LATERAL (
        SELECT CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out' WHEN p.blocked_at IS NOT NULL THEN 'blocked'
                    WHEN p.undeliverable_at IS NOT NULL THEN 'undeliverable'
                    WHEN p.archived_at IS NOT NULL THEN 'no longer reachable' ELSE '' END AS why
    ) no
    WHERE t.run_id + 0 = ANY(ARRAY(SELECT id FROM locked))  -- found by their ids, not by their runs
      AND t.id = ANY(%(targets)s::bigint[]) AND p.id = t.recipient_id
      AND t.status || '' = 'sending' AND t.fence = %(fence)s
      AND t.account_id = COALESCE(%(account)s, t.account_id) AND (t.begun_at IS NULL OR %(begun)s)
    RETURNING t.run_id, t.status
), counts AS (
    SELECT run_id, count(*) AS moved, count(*) FILTER (WHERE status = 'pending') AS pending,
           count(*) FILTER (WHERE status = 'skipped') AS skipped,
           count(*) FILTER (WHERE status = 'unconfirmed') AS unconfirmed
    FROM moved GROUP BY run_id
)
UPDATE delivery_run r
SET sending = r.sending - c.moved, pending = r.pending + c.pending, skipped = r.skipped + c.skipped,
    left_out = r.left_out + c.skipped, unconfirmed = r.unconfirmed + c.unconfirmed
FROM counts c WHERE r.id = c.run_id
RETURNING r.id
"""  # noqa: S608 - made of constants


def let_go(
    targets: Iterable[int], *, fence: int, now: datetime, begun: bool = False, account_id: int | None = None
) -> list[int]:
    """Give back targets that were claimed and not begun; return their runs.

    A recipient who may not get the message any more is skipped, or unconfirmed where an earlier try may have arrived;
    one to whom the account may not write for now waits.
    With `begun`, give back begun targets too: only for the pump that began them and kept them back. That counts no
    attempt.
    """
    arguments: dict[str, Any] = {"targets": list(targets), "fence": fence, "now": now, "begun": begun}
    arguments["account"] = account_id
    return [row[0] for row in execute(LET_GO, arguments)]
