"""The event `items.changed`: what became of items of queues, in batches (SPEC A4).

An item is told when it is added, changed, planned or withdrawn, in the transaction of that change; when it was sent,
failed or is in doubt, with the results of its run (`api/hooks/results.py`); and when a message comes back.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from accounts import outbox
from accounts.models.webhook import EventType
from accounts.outbox import Event
from delivery import conf
from delivery.models import RunTarget
from delivery.states import WITHDRAWN, TargetStatus

BATCH = 500  # targets of one event
# Said where an item has a later time than planned, and what moved it wrote no reason of its own: a full day
# (`planning/replan.py`), or a limit of new people.
LATER = "It leaves later than planned, since a limit of its account is reached."
WORDS = {
    TargetStatus.SENDING: "sending",
    TargetStatus.FAILED: "failed",
    TargetStatus.UNCONFIRMED: "in_doubt",
}


def items_changed(targets: QuerySet[RunTarget]) -> None:
    """Tell how the items of these targets are now; targets of reminders are left out."""
    if not outbox.is_wanted(EventType.ITEMS):
        return
    rows = targets.filter(item__isnull=False).select_related("run", "item").prefetch_related("recipient")
    ordered = rows.order_by("item__queue", "pk").iterator(chunk_size=BATCH)
    for queue_id, found in groupby(ordered, key=lambda target: target.item.queue_id):
        for some in batched(found, BATCH):
            outbox.emit(
                Event(
                    owner_id=some[0].run.owner_id,
                    type=EventType.ITEMS,
                    data=data_of(some),
                    sequence=sequence_of(queue_id),
                )
            )


def data_of(targets: Sequence[RunTarget]) -> dict[str, Any]:
    """Return what is told of items of one queue, by their targets."""
    now = timezone.now()
    return {"queue": targets[0].item.queue_id, "items": [_told(target, now) for target in targets]}


def sequence_of(queue_id: int) -> str:
    return f"queue:{queue_id}"


def _told(target: RunTarget, now: datetime) -> dict[str, Any]:
    item, status = target.item, TargetStatus(target.status)
    return {
        "id": item.pk,
        "own_id": item.own_id,
        "source": item.source,
        "recipient": target.recipient_id,
        "address": target.recipient.address,
        "account": target.account_id,
        "state": state_word(target, now),
        "planned_at": item.planned_at,
        "planned_for": target.not_before if status is TargetStatus.PENDING else None,
        "sent_at": target.settled_at if status is TargetStatus.SENT else None,
        "why": _why(target, status),
        "run": target.run_id,
        "target": target.pk,
    }


def state_word(target: RunTarget, now: datetime) -> str:
    """Return the state of an item in the word that its page has for it."""
    match TargetStatus(target.status):
        case TargetStatus.PENDING:
            return "planned" if target.not_before > now else "waiting"
        case TargetStatus.SENT:
            return "sent" if target.returned_at is None else "returned"
        case TargetStatus.SKIPPED:
            return "withdrawn" if target.error == WITHDRAWN else "skipped"
        case other:
            return WORDS[other]


def _why(target: RunTarget, status: TargetStatus) -> str:
    """Return the reason for the state of an item, as its page shows it."""
    if status is TargetStatus.SENT and target.returned_at is not None:
        return target.return_reason
    if status is not TargetStatus.SENT and target.error == WITHDRAWN:
        return ""
    if target.error:
        return target.error
    moved = _moved_why(target) if status is TargetStatus.PENDING else ""
    return moved or target.item.late_change


def _moved_why(target: RunTarget) -> str:
    """Return why a pending item leaves later than planned; empty where it does not."""
    item, now = target.item, timezone.now()
    if item.moved_why or target.not_before <= now:
        return item.moved_why
    planned = item.planned_at if target.run.on_time_first else None
    return LATER if planned is None or target.not_before > planned + conf.drain().on_time else ""


def batched(targets: Iterable[RunTarget], size: int) -> Iterator[list[RunTarget]]:
    """Yield the targets in lists of up to `size`."""
    source = iter(targets)
    while some := list(islice(source, size)):
        yield some
