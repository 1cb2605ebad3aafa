"""Stores what services report, each event once, and has it worked on."""

import hashlib
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from accounts.models import Account
from activity.models import Inbound
from delivery import queues
from delivery.storable import storable
from delivery.transports import base

WORK = "reminders.work_on_inbound"  # by its name: what a message means to a reminder is known above

LONGEST_ID = 255
LONGEST_TEXT = 100_000


@transaction.atomic
def store(account: Account, events: Sequence[base.InboundEvent]) -> None:
    """Keep the events that are new; a broker that is away costs a minute, until the sweep."""
    rows = [Inbound(account=account, **_values(event)) for event in events]
    if not rows:
        return
    Inbound.objects.bulk_create(rows, ignore_conflicts=True)
    queues.send_on_commit(WORK, account.pk)


def _values(event: base.InboundEvent) -> dict[str, Any]:
    values: dict[str, Any] = {"event_id": _id(event.event_id), "at": event.at}
    match event:
        case base.Inbound():
            values |= {
                "kind": Inbound.Kind.MESSAGE,
                "provider_id": _short(event.provider_id),
                "sender": _short(event.sender),
                "chat": _short(event.chat),
                "text": storable(event.text, LONGEST_TEXT),
            }
        case base.Receipt():
            values |= {
                "kind": Inbound.Kind.RECEIPT,
                "provider_id": _short(event.provider_id),
                "state": event.state,
                "text": storable(event.reason, LONGEST_TEXT),
            }
        case base.SessionChanged():
            values |= {
                "kind": Inbound.Kind.SESSION,
                "state": event.state,
                "text": storable(event.reason, LONGEST_TEXT),
            }
        case base.FirstContactsLocked():
            values |= {
                "kind": Inbound.Kind.LOCK,
                "until": event.until,
                "text": storable(event.reason, LONGEST_TEXT),
            }
    return values


def _id(event_id: str) -> str:
    """What tells the event apart from all others, also where it is longer than the column."""
    if len(event_id) <= LONGEST_ID:
        return _short(event_id)
    return hashlib.sha256(event_id.encode(errors="surrogatepass")).hexdigest()


def _short(text: str) -> str:
    return storable(text, LONGEST_ID)
