"""Finds messages in the ledger that a recipient got twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Double:
    """One message that one recipient got more than once, by the ledger."""

    kind: str
    owner: str
    account: str
    recipient: str
    runs: str
    part: int
    times: int
    first_at: datetime
    last_at: datetime
    provider_ids: str


# The same part of the same target, sent more than once: with or without a key of the service.
SAME_TARGET = """
SELECT 'same target', u.username, a.name, p.address, t.run_id::text, s.part, s.times, s.first_at, s.last_at, s.ids
FROM (
    SELECT target_id, part, count(*) AS times, min(at) AS first_at, max(at) AS last_at,
           string_agg(provider_id, ' ' ORDER BY at) AS ids
    FROM activity_attempt WHERE outcome = 'sent' AND target_id IS NOT NULL AND at >= %(since)s
    GROUP BY target_id, part HAVING count(*) > 1
) s
JOIN delivery_runtarget t ON t.id = s.target_id
JOIN accounts_recipient p ON p.id = t.recipient_id
JOIN accounts_account a ON a.id = t.account_id
JOIN accounts_user u ON u.id = p.owner_id
ORDER BY s.first_at
"""
# Two runs of one reminder, fired for the same moment, that both reached somebody. A moment has one run, unless it was
# fired again by hand or by a database that had forgotten the first: then they are fired within the hour.
SAME_MOMENT = """
SELECT 'same moment', u.username, min(a.name), p.address, string_agg(DISTINCT t.run_id::text, ' '), l.part,
       count(*), min(l.at), max(l.at), string_agg(l.provider_id, ' ' ORDER BY l.at)
FROM activity_attempt l
JOIN delivery_runtarget t ON t.id = l.target_id
JOIN delivery_run r ON r.id = t.run_id
JOIN accounts_recipient p ON p.id = t.recipient_id
JOIN accounts_account a ON a.id = t.account_id
JOIN accounts_user u ON u.id = p.owner_id
WHERE l.outcome = 'sent' AND l.at >= %(since)s AND r.reminder_id IS NOT NULL
GROUP BY u.username, p.id, p.address, r.reminder_id, COALESCE(r.due_at, date_trunc('hour', r.fired_at)), l.part
HAVING count(DISTINCT t.run_id) > 1
ORDER BY min(l.at)
"""


def find(*, since: datetime) -> Iterator[Double]:
    """Return every message since `since` that was sent to a recipient more than once."""
    for statement in (SAME_TARGET, SAME_MOMENT):
        with connection.cursor() as cursor:
            cursor.execute(statement, {"since": since})
            for row in cursor.fetchall():
                yield Double(**dict(zip(Double.__dataclass_fields__, row, strict=True)))
