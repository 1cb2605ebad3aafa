"""Applies receipts: what happened to messages after they were sent. Receipts come twice, late and in any order.

A message of several parts has arrived when all of its parts have, and is read when all are. A part that failed counts
for the whole message, since its recipient got less than was meant (`returns.py`).
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from activity.models import Inbound
from delivery.inbound import aliases, returns
from delivery.models import RunTarget
from delivery.transports.base import Known

MOST = 500  # at a time
NOT_OURS = timedelta(minutes=10)  # an older receipt belongs to no message of ours
# A failure is worth more patience: a message may be in doubt for long, and its id is known only afterwards.
FAILURE_NOT_OURS = timedelta(hours=23)  # less than the day for which `handle.py` looks for what waits
MOST_ROUNDS = 100

# Two tasks that each handle one part must not both conclude that the other part is missing.
LOCK = "SELECT FROM delivery_runtarget WHERE id = ANY(%(targets)s) ORDER BY id FOR NO KEY UPDATE"
MARK = """
UPDATE activity_inbound i SET target_id = found.target, handled_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(targets)s::bigint[]) AS found (id, target) WHERE i.id = found.id
"""
# For each part the earliest time of a kind counts, in whatever order receipts come, and a read part is a delivered
# part. For the whole message the time of its last part counts. While parts are still to be sent, it has not arrived.
APPLY = """
WITH part AS (
    SELECT target_id, provider_id,
           min(at) FILTER (WHERE state IN ('delivered', 'read')) AS delivered,
           min(at) FILTER (WHERE state = 'read') AS read
    FROM activity_inbound WHERE kind = 'receipt' AND target_id = ANY(%(targets)s) GROUP BY target_id, provider_id
), whole AS (
    SELECT target_id, count(delivered) AS delivered_parts, max(delivered) AS delivered,
           count(read) AS read_parts, max(read) AS read
    FROM part GROUP BY target_id
)
UPDATE delivery_runtarget t
SET delivered_at = CASE WHEN delivered_parts > COALESCE(cardinality(t.earlier_ids), 0) THEN delivered END,
    read_at = CASE WHEN read_parts > COALESCE(cardinality(t.earlier_ids), 0) THEN read END
FROM whole
WHERE t.id = whole.target_id AND t.status NOT IN ('pending', 'sending')
"""
FIND = """
SELECT provider_id, id FROM delivery_runtarget
WHERE account_id = %(account)s AND provider_id = ANY(%(ids)s) AND provider_id <> ''
UNION ALL
SELECT told.id, t.id FROM delivery_runtarget t, unnest(t.earlier_ids) AS told (id)
WHERE t.earlier_ids && %(ids)s::varchar[] AND t.earlier_ids IS NOT NULL AND t.account_id = %(account)s
"""


def settle(account_id: int) -> None:
    """Record receipts on the account's targets; receipts that came too early are left for later."""
    last = 0
    for _ in range(MOST_ROUNDS):
        last = _settle_some(account_id, after=last)
        if not last:
            return


@transaction.atomic
def _settle_some(account_id: int, *, after: int) -> int:
    """Return the id of the last receipt looked at; 0 when there are no more."""
    waiting = Inbound.objects.filter(account_id=account_id, kind=Inbound.Kind.RECEIPT, handled_at=None)
    locked = waiting.filter(pk__gt=after).order_by("pk").select_for_update(skip_locked=True)
    rows = list(locked[:MOST])
    if not rows:
        return 0
    targets = targets_of(account_id, sorted({row.provider_id for row in rows}))
    found = [(row, targets[row.provider_id]) for row in rows if row.provider_id in targets]
    if found:
        _apply(found)
        _learn(found)
    _give_up([row for row in rows if row.provider_id not in targets])
    return rows[-1].pk


def targets_of(account_id: int, ids: list[str]) -> dict[str, int]:
    """Return the targets that have a part with one of these ids, by id."""
    with connection.cursor() as cursor:
        cursor.execute(FIND, {"account": account_id, "ids": ids})
        return dict(cursor.fetchall())


def _apply(found: list[tuple[Inbound, int]]) -> None:
    late = [each for each in found if returns.is_late(each[0])]
    if late:
        returns.lock(late)
    arguments: dict[str, Any] = {
        "ids": [row.pk for row, _ in found],
        "targets": [target for _, target in found],
        "now": timezone.now(),
    }
    with connection.cursor() as cursor:
        for statement in (LOCK, MARK, APPLY):
            cursor.execute(statement, arguments)
    if late:
        returns.apply(found[0][0].account, late)


def _learn(found: list[tuple[Inbound, int]]) -> None:
    """Learn who is behind a hidden address from a receipt that uses it: the ledger knows the recipient."""
    hidden = {target: row for row, target in found if row.chat}
    if not hidden:
        return
    people = RunTarget.objects.filter(pk__in=hidden, recipient__kind="person").select_related("recipient")
    known = [Known(hidden=hidden[row.pk].chat, address=row.recipient.address) for row in people]
    aliases.learn(found[0][0].account, known, aliases.Source.RECEIPT)


def _give_up(rows: Iterable[Inbound]) -> None:
    """Mark old receipts without a target as handled: their messages were typed on the phone."""
    now = timezone.now()
    old = [
        row.pk
        for row in rows
        if row.created_at < now - (FAILURE_NOT_OURS if returns.is_late(row) else NOT_OURS)
    ]
    Inbound.objects.filter(pk__in=old).update(handled_at=now)
