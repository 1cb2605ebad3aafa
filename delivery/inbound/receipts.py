"""Receipts: what became of messages that were sent. They come twice, late and in any order."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from activity.models import Inbound
from delivery.models import RunTarget
from delivery.transports.base import ReceiptState

MOST = 500  # at a time
NOT_OURS = timedelta(minutes=10)  # after which a receipt belongs to nothing that we sent
MOST_ROUNDS = 100

# The earliest time of each kind holds, whatever comes first; LEAST takes no notice of NULL. Who read it got it.
APPLY = """
UPDATE delivery_runtarget t
SET delivered_at = LEAST(t.delivered_at, told.delivered, told.read),
    read_at = LEAST(t.read_at, told.read),
    error = CASE WHEN told.failed <> '' AND t.status = 'sent' THEN told.failed ELSE t.error END
FROM (
    SELECT target AS id,
           min(at) FILTER (WHERE state = 'delivered') AS delivered,
           min(at) FILTER (WHERE state = 'read') AS read,
           COALESCE(max(reason) FILTER (WHERE state = 'failed'), '') AS failed
    FROM unnest(%(targets)s::bigint[], %(states)s::text[], %(times)s::timestamptz[], %(reasons)s::text[])
         AS receipt (target, state, at, reason)
    GROUP BY target ORDER BY target
) told
WHERE t.id = told.id
"""
MARK = """
UPDATE activity_inbound i SET target_id = found.target, handled_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(targets)s::bigint[]) AS found (id, target) WHERE i.id = found.id
"""


def settle(account_id: int) -> None:
    """Note on the account's targets what their receipts say; those that came too early are left for later."""
    last = 0
    for _ in range(MOST_ROUNDS):
        last = _settle_some(account_id, after=last)
        if not last:
            return


@transaction.atomic
def _settle_some(account_id: int, *, after: int) -> int:
    """The id of the last one looked at; 0 when there are no more."""
    waiting = Inbound.objects.filter(account_id=account_id, kind=Inbound.Kind.RECEIPT, handled_at=None)
    locked = waiting.filter(pk__gt=after).order_by("pk").select_for_update(skip_locked=True)
    rows = list(locked[:MOST])
    if not rows:
        return 0
    targets = dict(
        RunTarget.objects.filter(account_id=account_id, provider_id__in={row.provider_id for row in rows})
        .order_by()
        .values_list("provider_id", "pk")
    )
    found = [(row, targets[row.provider_id]) for row in rows if row.provider_id in targets]
    if found:
        _apply(found)
    _give_up(row.pk for row in rows if row.provider_id not in targets)
    return rows[-1].pk


def _apply(found: list[tuple[Inbound, int]]) -> None:
    arguments: dict[str, Any] = {
        "ids": [row.pk for row, _ in found],
        "targets": [target for _, target in found],
        "states": [row.state for row, _ in found],
        "times": [row.at for row, _ in found],
        "reasons": [_reason(row) for row, _ in found],
        "now": timezone.now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(APPLY, arguments)
        cursor.execute(MARK, arguments)


def _give_up(ids: Iterable[int]) -> None:
    """What is old and belongs to no target was typed on the phone, or was part of a longer message."""
    now = timezone.now()
    Inbound.objects.filter(pk__in=list(ids), created_at__lt=now - NOT_OURS).update(handled_at=now)


def _reason(row: Inbound) -> str:
    if row.state != ReceiptState.FAILED:
        return ""
    return f"Taken, but reported as not delivered later{f': {row.text}' if row.text else ''}."[:500]
