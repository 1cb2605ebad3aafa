"""Rules: who may get a follow-up, when, and how often. Pure: `now` and `rng` are arguments.

`hygiene.py` has the same rules in SQL, for a whole queue at once; a test compares the two.
"""

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Reason(StrEnum):
    """The reason why a follow-up left the queue without being sent."""

    REPLIED = "replied"
    OPTED_OUT = "opted out"
    BLOCKED = "blocked"
    UNDELIVERABLE = "undeliverable"
    UNREACHABLE = "no longer reachable"
    CONVERTED = "converted"
    COOLING_DOWN = "cooling down"
    AT_MAXIMUM = "at the maximum"
    NOT_INTERESTED = "not interested"
    SWITCHED_OFF = "reminder switched off"
    STEP_REMOVED = "step removed"
    ACCOUNT_GONE = "account archived"
    NOT_DELIVERED = "not delivered"
    RETURNED = "message returned"


class Refusal(StrEnum):
    """The reason why a follow-up did not enter the queue."""

    FULL = "queue full"
    BACKPRESSURE = "backpressure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """The facts about a recipient. `attempts` counts follow-ups since the last reply."""

    attempts: int = 0
    cooldown_until: datetime | None = None
    not_interested: bool = False
    converted: bool = False
    opted_out: bool = False
    blocked: bool = False
    undeliverable: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The number of times a recipient is asked, and the length of the cooldown after that."""

    most: int
    cooldown: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The size of the queue, the threshold above which it slows down, and by how much delays grow then."""

    most: int
    threshold: int
    growth: tuple[float, float]


def refreshed(contact: Contact, now: datetime) -> Contact:
    """Return the contact without an expired cooldown and everything that came from it."""
    if contact.cooldown_until is None or contact.cooldown_until > now:
        return contact
    return replace(contact, attempts=0, cooldown_until=None, not_interested=False)


def why_not(contact: Contact, *, now: datetime, most: int) -> Reason | None:
    """Return why this contact must not get a follow-up now, the strongest reason first, or None."""
    contact = refreshed(contact, now)
    reasons = (
        (contact.opted_out, Reason.OPTED_OUT),
        (contact.blocked, Reason.BLOCKED),
        (contact.undeliverable, Reason.UNDELIVERABLE),
        (contact.archived, Reason.UNREACHABLE),
        (contact.converted, Reason.CONVERTED),
        (contact.cooldown_until is not None, Reason.COOLING_DOWN),
        (contact.attempts >= most, Reason.AT_MAXIMUM),
        (contact.not_interested, Reason.NOT_INTERESTED),
    )
    return next((reason for holds, reason in reasons if holds), None)


def after_attempt(contact: Contact, *, now: datetime, patience: Patience) -> Contact:
    """Return the contact after one more attempt. The last one sets the cooldown and "not interested"."""
    contact = refreshed(contact, now)
    attempts = min(contact.attempts + 1, max(patience.most, contact.attempts))
    if attempts < patience.most:
        return replace(contact, attempts=attempts)
    return replace(contact, attempts=attempts, cooldown_until=now + patience.cooldown, not_interested=True)


def after_reply(contact: Contact) -> Contact:
    return replace(contact, attempts=0, cooldown_until=None, not_interested=False)


def refused(*, size: int, high: bool, limits: QueueLimits) -> Refusal | None:
    """Return why a follow-up may not enter a queue that holds `size`, or None."""
    if size >= limits.most:
        return Refusal.FULL
    return Refusal.BACKPRESSURE if size > limits.threshold and not high else None


def delay(base: timedelta, *, size: int, limits: QueueLimits, rng: random.Random) -> timedelta:
    """Return the wait without a reply; above the threshold it is longer by a random share."""
    return base * (1 + rng.uniform(*limits.growth)) if size > limits.threshold else base
