"""Sends on-time work first and overdue work slowly, for accounts whose profile says so (SPEC P9). Pure.

A message that was planned within the last two minutes is on time, and leaves as soon as the account's limits allow.
An older message is overdue, after an outage or a full day. Overdue messages leave one by one: when three to five
minutes have passed since the account sent anything, and only if the gap behind the message ends before the next planned
one, and the caps have room for all planned messages besides. So overdue messages never leave in a bunch, never make an
on-time message late, and are never dropped. Both kinds are under the account's same caps.

The wait is drawn from the number of the last attempt in the ledger: a second question, after a restart or a loss of
Redis, gives the same moment, and no state has to be stored for it.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The time for which work counts as on time, and the gaps between overdue messages."""

    on_time: timedelta = timedelta(minutes=2)
    gap_min: timedelta = timedelta(minutes=3)
    gap_max: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSend:
    """The newest row of the ledger for an account and action."""

    at: datetime
    attempt_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work that an account has at this moment."""

    on_time: bool  # there is due work that is on time
    overdue: bool  # there is overdue work
    next_planned: datetime | None  # when the next target comes due
    room: bool = True  # the caps allow one message more than is planned for the coming hour and for today


class Serve(StrEnum):
    """The kind of work to send now."""

    ON_TIME = "on_time"
    OVERDUE = "overdue"  # one message, then a new gap begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Nothing is due before `until`; None while there is nothing to send."""

    until: datetime | None


def has_room(cap: int | None, *, sent: int, planned: int, parts: int = 1) -> bool:
    """Decide whether a cap allows `parts` messages more than were sent and are planned."""
    return cap is None or sent + planned + parts <= cap


def overdue_before(drain: Drain, now: datetime) -> datetime:
    """Return the moment that divides the work: planned before it is overdue, planned from it on is on time."""
    return now - drain.on_time


def drains_at(drain: Drain, last: LastSend | None) -> datetime | None:
    """Return from when on an overdue message may leave; None means at once, because nothing was ever sent."""
    if last is None:
        return None
    # The draw needs no secrecy, it only has to vary; so the number of an attempt is good enough.
    share = random.Random(last.attempt_id).random()
    return last.at + drain.gap_min + (drain.gap_max - drain.gap_min) * share


def turn(
    drain: Drain, work: Work, last: LastSend | None, now: datetime, *, gap: timedelta = timedelta()
) -> Serve | Sleep:
    """Return what to send now, or when to look again; the limits still have to allow the message.

    `gap` is the longest gap that the account leaves after any message.
    """
    if work.on_time:
        return Serve.ON_TIME
    drains = max(drains_at(drain, last) or now, now)
    in_the_way = work.next_planned is not None and (not work.room or work.next_planned - drains < gap)
    if work.overdue and in_the_way:
        return Sleep(until=work.next_planned)
    if work.overdue:
        return Serve.OVERDUE if drains <= now else Sleep(until=_earlier(drains, work.next_planned))
    return Sleep(until=work.next_planned)


def _earlier(drains: datetime, planned: datetime | None) -> datetime:
    return drains if planned is None else min(drains, planned)
