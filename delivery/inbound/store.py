"""Stores the reports of services, each event once, and starts the task that handles them."""

import hashlib
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from accounts.models import Account
from activity.models import Inbound
from activity.storable import storable
from delivery.engine import wakeups
from delivery.inbound import aliases
from delivery.transports import base

WORK = "reminders.work_on_inbound"  # called by name: `reminders` imports this package, never the reverse

# Beside the states of a session.
SLOW_DOWN = "slow_down"
OWN_LIMITS = "own_limits"

LONGEST_ID = 255
LONGEST_TEXT = 100_000


@transaction.atomic
def store(account: Account, events: Sequence[base.InboundEvent]) -> None:
    """Store the events that are new. While the broker is away they wait a minute, for the sweep."""
    known = [event.known for event in events if isinstance(event, base.AddressLearnt)]
    new = aliases.learn(account, known, aliases.Source.MESSAGE) if known else False
    rows = [
        Inbound(account=account, **_values(event))
        for event in events
        if not isinstance(event, base.AddressLearnt)
    ]
    Inbound.objects.bulk_create(rows, ignore_conflicts=True)
    if rows or new:
        wakeups.send_on_commit(WORK, account.pk)


Stored = (
    base.Inbound
    | base.Receipt
    | base.ConsentTold
    | base.SessionChanged
    | base.FirstContactsLocked
    | base.SlowDownAsked
    | base.OwnLimitsChanged
)


def _values(event: Stored) -> dict[str, Any]:
    values: dict[str, Any] = {"event_id": _id(event.event_id), "at": event.at}
    match event:
        case base.Inbound():
            values |= {
                "kind": Inbound.Kind.MESSAGE,
                "provider_id": _short(event.provider_id),
                "sender": _short(event.sender),
                "chat": _short(event.chat),
                "text": storable(event.text, LONGEST_TEXT),
                "direct": event.direct,
                "subject": _short(event.subject),
                "answers": _short(event.answers),
            }
        case base.Receipt():
            values |= {
                "kind": Inbound.Kind.RECEIPT,
                "provider_id": _short(event.provider_id),
                "state": event.state,
                "chat": _short(event.chat),
                "text": storable(event.reason, LONGEST_TEXT),
            }
        case base.ConsentTold():
            values |= {
                "kind": Inbound.Kind.CONSENT,
                "sender": _short(event.sender),
                "state": "in" if event.wanted else "out",
            }
        case base.SessionChanged():
            values |= {
                "kind": Inbound.Kind.SESSION,
                "state": event.state,
                "text": storable(event.reason, LONGEST_TEXT),
            }
        case base.SlowDownAsked():
            values |= {
                "kind": Inbound.Kind.SESSION,
                "state": SLOW_DOWN,
                "text": storable(event.reason, LONGEST_TEXT),
            }
        case base.OwnLimitsChanged():
            values |= {"kind": Inbound.Kind.SESSION, "state": OWN_LIMITS}
        case base.FirstContactsLocked():
            values |= {
                "kind": Inbound.Kind.LOCK,
                "until": event.until,
                "text": storable(event.reason, LONGEST_TEXT),
            }
    return values


def _id(event_id: str) -> str:
    """Return an id that tells the event apart from all others, also where the service's id is too long to store."""
    if len(event_id) <= LONGEST_ID:
        return _short(event_id)
    return hashlib.sha256(event_id.encode(errors="surrogatepass")).hexdigest()


def _short(text: str) -> str:
    return storable(text, LONGEST_ID)
