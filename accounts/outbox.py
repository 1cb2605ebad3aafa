"""Writes events for webhooks in the transaction of the change, so that none is lost and none is told that never was.

Where the owner has no webhook that wants the event, or was deactivated, one look-up finds nothing and writes nothing.
Whoever changes a run holds its lock here, so the rows of one run have ids in the order of their commits: they arrive in
that order. `api/hooks` delivers them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.utils import timezone

from accounts.models.webhook import Delivery, EventType, Webhook

KEPT_TRYING = timedelta(days=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to what an owner has. Events of one `sequence` are told in their order."""

    owner_id: int
    type: str
    data: Mapping[str, Any]
    sequence: str = ""


WRITE = """
INSERT INTO accounts_delivery (webhook_id, key, type, sequence, payload, created_at, give_up_at, state, attempts,
                               next_try_at, answer)
SELECT w.id, gen_random_uuid(), e.type, e.sequence, e.payload::jsonb, %(now)s, %(give_up)s, 'pending', 0, %(now)s, ''
FROM unnest(%(owners)s::bigint[], %(types)s::text[], %(sequences)s::text[], %(payloads)s::text[])
     WITH ORDINALITY AS e(owner_id, type, sequence, payload, place)
JOIN accounts_webhook w ON w.owner_id = e.owner_id
JOIN accounts_user u ON u.id = w.owner_id AND u.is_active
WHERE w.switched_off_at IS NULL AND e.type = ANY(w.events) ORDER BY e.place
"""


def is_wanted(*types: str) -> bool:
    """Return whether any webhook is told events of a type: what is costly to read need not be read otherwise."""
    return Webhook.objects.filter(
        switched_off_at=None, events__overlap=[str(type_) for type_ in types]
    ).exists()


def emit(event: Event) -> None:
    """Write one event for every webhook of its owner that wants it."""
    emit_all([event])


def emit_all(events: Sequence[Event]) -> None:
    """Write events in their order, in one statement."""
    if not events:
        return
    now = timezone.now()
    arguments: dict[str, Any] = {
        "now": now,
        "give_up": now + KEPT_TRYING,
        "owners": [event.owner_id for event in events],
        "types": [str(event.type) for event in events],
        "sequences": [event.sequence for event in events],
        "payloads": [written(event.type, event.data, now) for event in events],
    }
    with connection.cursor() as cursor:
        cursor.execute(WRITE, arguments)


def emit_to(webhook_id: int, type_: str, data: Mapping[str, Any], *, sequence: str = "") -> Delivery:
    """Write an event for one webhook alone."""
    now = timezone.now()
    return Delivery.objects.create(
        webhook_id=webhook_id,
        type=str(type_),
        sequence=sequence,
        payload=json.loads(written(type_, data, now)),
        created_at=now,
        give_up_at=now + KEPT_TRYING,
        next_try_at=now,
    )


FEEDS = """
INSERT INTO accounts_resultfeed (webhook_id, run_id, last_attempt, last_skipped, last_unconfirmed, done)
SELECT w.id, r.run_id, 0, 0, 0, false
FROM unnest(%(runs)s::bigint[], %(owners)s::bigint[], %(of_queues)s::boolean[]) AS r(run_id, owner_id, of_queue)
JOIN accounts_webhook w ON w.owner_id = r.owner_id
JOIN accounts_user u ON u.id = w.owner_id AND u.is_active
WHERE w.switched_off_at IS NULL AND (%(targets)s = ANY(w.events) OR (r.of_queue AND %(items)s = ANY(w.events)))
ON CONFLICT (webhook_id, run_id) DO UPDATE SET done = false, last_skipped = 0, last_unconfirmed = 0
"""


def follow_runs(runs: Sequence[tuple[int, int, bool]]) -> None:
    """Let the results of runs be told from here on; each is given with its owner, and whether it sends items."""
    if not runs:
        return
    arguments: dict[str, Any] = {
        "runs": [run_id for run_id, _, _ in runs],
        "owners": [owner_id for _, owner_id, _ in runs],
        "of_queues": [of_queue for _, _, of_queue in runs],
        "targets": EventType.RUN_TARGETS.value,
        "items": EventType.ITEMS.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(FEEDS, arguments)


def written(type_: str, data: Mapping[str, Any], at: datetime) -> str:
    """Return the body of an event, as Standard Webhooks has it."""
    body = {"type": str(type_), "timestamp": at, "data": data}
    return json.dumps(body, cls=DjangoJSONEncoder)
