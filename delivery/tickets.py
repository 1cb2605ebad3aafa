"""Test sends that were asked for, and what became of each.

They are kept in Redis for an hour: no run counts them and nothing depends on them but the page that waits for its
answer. What they used of the account's limits is in the ledger, as for every message.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from config.redis import client

KEPT_SECONDS = 3600
TWICE_SECONDS = 5  # within which the same test again is a double click


class TicketState(StrEnum):
    """How far a test is."""

    WAITING = "waiting"  # for its account's turn, or for a permit
    SENT = "sent"  # the service took every part
    FAILED = "failed"  # it was not sent, or not all of it
    UNKNOWN = "unknown"  # it may have arrived


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One message to oneself: what is sent, from which account, to where, with whose values filled in."""

    account_id: int
    reminder_id: int
    address: str
    action: str
    subject: str
    parts: Sequence[Mapping[str, str]]
    values: Mapping[str, Any]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    asked_at: float = field(default_factory=lambda: datetime.now(UTC).timestamp())
    state: TicketState = TicketState.WAITING
    sentence: str = "It waits for its account's turn."
    ended_at: float | None = None

    @property
    def over(self) -> bool:
        return self.state is not TicketState.WAITING


def keep(ticket: Ticket) -> Ticket:
    client().set(_key(ticket.id), json.dumps(asdict(ticket)), ex=KEPT_SECONDS)
    return ticket


def keep_once(ticket: Ticket) -> Ticket:
    """Keep it, unless the very same was asked for a moment ago: then that one is the answer, if it may arrive."""
    keep(ticket)  # first, so that whoever comes second finds it
    said = (ticket.account_id, ticket.reminder_id, ticket.address, ticket.action, ticket.subject)
    content = json.dumps([*said, list(ticket.parts), dict(ticket.values)], sort_keys=True)
    alike = f"paceline:ticket-alike:{hashlib.sha256(content.encode()).hexdigest()}"
    if client().set(alike, json.dumps(ticket.id), nx=True, ex=TWICE_SECONDS):
        return ticket
    stored = client().get(alike)
    earlier = find(json.loads(stored)) if stored else None
    if earlier is not None and earlier.state is not TicketState.FAILED:
        return earlier
    client().set(alike, json.dumps(ticket.id), ex=TWICE_SECONDS)
    return ticket


def find(ticket_id: str) -> Ticket | None:
    """The ticket; None once it is forgotten, or was never there."""
    stored = client().get(_key(ticket_id))
    if stored is None:
        return None
    values = json.loads(stored)
    return Ticket(**values | {"state": TicketState(values["state"])})


def settle(ticket: Ticket, state: TicketState, sentence: str) -> Ticket:
    now = datetime.now(UTC).timestamp()
    return keep(replace(ticket, state=state, sentence=sentence, ended_at=now))


def first_time(ticket: Ticket) -> bool:
    """Whether nobody has begun to send it yet: a task may be delivered twice, a message must not."""
    return bool(client().set(f"{_key(ticket.id)}:begun", 1, nx=True, ex=KEPT_SECONDS))


def _key(ticket_id: str) -> str:
    return f"paceline:ticket:{ticket_id}"
