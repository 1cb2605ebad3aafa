"""What is asked of the limiter, and what it answers: values, without Redis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from delivery.lease import Lease
from delivery.pacing import Pace
from delivery.states import WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A calendar day of the account's zone: from `start_ms` until before `end_ms`."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Leave to send the messages of one target, from `at_ms` on: a permit for each."""

    at_ms: int
    permits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """At least one unit, and at most as many as were wanted, in ascending order."""

    units: tuple[Unit, ...]
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing now. Before `until_ms`, which is after `now_ms`, only a settled or returned permit helps."""

    until_ms: int
    reason: WaitReason
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The limiter took note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost:
    """Another pump serves the account, or may: stop. What was settled and returned was taken note of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Redis does not know enough of this account and action: rebuild it from the ledger, then ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """Redis does not answer, so nothing may leave. It may have heard: `adopt` before the next `take`."""

    reason: str


Noted = Done | LeaseLost | Forgotten | Away


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of its limits an account has used. A minute or an hour that no cap needs is not kept: None."""

    minute: int | None
    hour: int | None
    day: int
    free_at_ms: int
    held_until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A wish for `want` units of `cost` messages, and news of permits that were granted before.

    gaps_ms   the time to leave free after each wanted unit.
    settled   permits whose messages are done with, whatever became of them, each with the latest time at
              which the receiver can have seen the message: when its answer came, or when it was given up.
    returned  permits that were not used. A permit that is already settled stays so.
    free_at_ms  the end of the gap after the last unit as it really began, which may be later than planned.
    """

    lease: Lease
    action: str
    pace: Pace
    day: Day
    want: int
    cost: int
    gaps_ms: Sequence[int]
    settled: Mapping[str, int] = field(default_factory=dict)
    returned: Sequence[str] = ()
    free_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the ledger knows of an account and action, for a limiter that forgot.

    day, day_used  the day, and its messages, those in flight included.
    reach_ms       how far back `times_ms` goes: `Limiter.reach_ms(pace)`, or further.
    times_ms       when messages were seen at the latest. One that a dead pump may still have in the air
                   belongs here too, at the latest time at which it can arrive.
    in_flight      permits that the asking pump holds, each with the start of its unit; it settles or returns
                   them later, as if nothing had been forgotten.
    batch          messages of the current batch, those in flight included.
    last_ms        the start of the last message that is not in flight, however old; 0 if there was none.
    free_at_ms     the end of the gap after the last message.
    held_until_ms  nothing is granted before it.
    """

    day: Day
    day_used: int
    reach_ms: int
    times_ms: Sequence[int] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    batch: int = 0
    last_ms: int = 0
    free_at_ms: int = 0
    held_until_ms: int = 0
