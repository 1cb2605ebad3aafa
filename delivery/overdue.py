"""On-time work first, overdue work slowly (SPEC P9): for accounts whose profile says so. Pure.

What was planned within the last two minutes is on time, and goes as soon as the account's limits let it. What is older
was held up, by an outage or a full day, and is drained: one message when three to five minutes have passed since the
account sent anything, and only if the gap behind it ends before the next one that is planned, and the caps have room
for all that is planned besides. So it never goes out in a bunch, never makes a message late that is on time, and is
never dropped. Both are under the same caps, the account's.

How long to wait is drawn from the number of the last attempt in the ledger: asked again, after a restart or a loss of
Redis, it is the same moment, and no state has to be kept for it.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How long work is on time, and how far apart it leaves once it is overdue."""

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
    """What an account has to send at this moment."""

    on_time: bool  # something is due and on time
    overdue: bool  # something is overdue
    next_planned: datetime | None  # when the next one comes due
    room: bool = True  # the caps allow one more than what is planned for the coming hour and for today


class Serve(StrEnum):
    """Whose turn it is."""

    ON_TIME = "on_time"
    OVERDUE = "overdue"  # one message, and then the gap begins anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Nobody's, until then; None while there is nothing to send."""

    until: datetime | None


def has_room(cap: int | None, *, sent: int, planned: int, parts: int = 1) -> bool:
    """Whether a cap allows `parts` messages more than what was sent and what is planned."""
    return cap is None or sent + planned + parts <= cap


def overdue_before(drain: Drain, now: datetime) -> datetime:
    """What was planned before this moment is overdue; what was planned from it on is on time."""
    return now - drain.on_time


def drains_at(drain: Drain, last: LastSend | None) -> datetime | None:
    """From when on an overdue message may leave; None: at once, because nothing was ever sent."""
    if last is None:
        return None
    # The number of an attempt is no secret, and neither is this: it only has to vary.
    share = random.Random(last.attempt_id).random()
    return last.at + drain.gap_min + (drain.gap_max - drain.gap_min) * share


def turn(
    drain: Drain, work: Work, last: LastSend | None, now: datetime, *, gap: timedelta = timedelta()
) -> Serve | Sleep:
    """What to send now, or when to look again; the limits still have to let it go.

    `gap` is the longest that the account leaves after any message.
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
