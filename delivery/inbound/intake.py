"""Stores what services report, each event once, and has it worked on."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from accounts.models import Account
from activity.models import Inbound
from delivery import queues
from delivery.transports import base

WORK = "reminders.work_on_inbound"  # by its name: what a message means to a reminder is known above

LONGEST_ID = 255


@transaction.atomic
def store(account: Account, events: Sequence[base.InboundEvent]) -> None:
    """Keep the events that are new; a broker that is away costs a minute, until the sweep."""
    rows = [Inbound(account=account, **_values(event)) for event in events]
    if not rows:
        return
    Inbound.objects.bulk_create(rows, ignore_conflicts=True)
    queues.send_on_commit(WORK, account.pk)


def _values(event: base.InboundEvent) -> dict[str, Any]:
    values: dict[str, Any] = {"event_id": _short(event.event_id), "at": event.at}
    match event:
        case base.Inbound():
            values |= {
                "kind": Inbound.Kind.MESSAGE,
                "provider_id": _short(event.provider_id),
                "sender": _short(event.sender),
                "chat": _short(event.chat),
                "text": event.text.replace("\x00", ""),
            }
        case base.Receipt():
            values |= {
                "kind": Inbound.Kind.RECEIPT,
                "provider_id": _short(event.provider_id),
                "state": event.state,
                "text": event.reason.replace("\x00", ""),
            }
        case base.SessionChanged():
            values |= {"kind": Inbound.Kind.SESSION, "state": event.state, "text": event.reason}
        case base.FirstContactsLocked():
            values |= {"kind": Inbound.Kind.LOCK, "until": event.until, "text": event.reason}
    return values


def _short(text: str) -> str:
    """As much as the column holds, and nothing that PostgreSQL refuses."""
    return text.replace("\x00", "")[:LONGEST_ID]
