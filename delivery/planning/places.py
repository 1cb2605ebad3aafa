"""Gives planned targets their times, in one statement however many there are."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from delivery.planning.diary import Slot

# The targets of a run and an account that are planned within a stretch, counted in their order from 1; those from
# the first place on get the times, as many as each has room for.
MOVE = """
WITH ranked AS MATERIALIZED (
    SELECT t.id, row_number() OVER (ORDER BY t.not_before, t.id) AS place
    FROM delivery_runtarget t
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending'
      AND t.not_before >= %(since)s AND t.not_before < %(until)s
), slots AS (
    SELECT s.at, place FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[], %(times)s::timestamptz[])
        AS s(first, last, at) CROSS JOIN LATERAL generate_series(s.first, s.last) AS place
)
UPDATE delivery_runtarget t SET not_before = slots.at
FROM ranked JOIN slots USING (place) WHERE t.id = ranked.id AND t.status = 'pending'
"""


def give(
    slots: Sequence[Slot], *, run_id: int, account_id: int, since: datetime, until: datetime, skip: int = 0
) -> int:
    """Plan the targets of a stretch anew but for the first `skip` of them; answers with how many were."""
    ends: list[int] = []
    for slot in slots:
        ends.append((ends[-1] if ends else skip) + slot.targets)
    arguments: dict[str, Any] = {
        "run": run_id,
        "account": account_id,
        "since": since,
        "until": until,
        "firsts": [end - slot.targets + 1 for end, slot in zip(ends, slots, strict=True)],
        "lasts": ends,
        "times": [slot.at for slot in slots],
    }
    with connection.cursor() as cursor:
        cursor.execute(MOVE, arguments)
        moved: int = cursor.rowcount
    return moved
