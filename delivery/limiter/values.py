"""Requests to the limiter and its answers: values, without Redis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from delivery.clocks import Expected
from delivery.engine.lease import Lease
from delivery.pacing import Pace
from delivery.states import WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A calendar day of the account's zone: from `start_ms` until before `end_ms`."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A message to a new person, seen by `at_ms` at the latest, with the right that it used.

    There is no right where the day has counted the person already. `anew` takes a place in the week; else the place
    moves here from the message `before_ms`, if there was one.
    """

    at_ms: int
    right: str = ""
    anew: bool = False
    before_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Permission to send the messages of one target, from `at_ms` on: a permit for each message."""

    at_ms: int
    permits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """At least one unit, and at most as many as were wanted, in ascending order.

    Each of the `rights` is leave to write to one new person with one of the units; at most `anew` of them are for
    people whom the week has not counted.
    """

    units: tuple[Unit, ...]
    now_ms: int
    mark: str = ""
    rights: tuple[str, ...] = ()
    anew: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """No permits now. Before `until_ms`, which is after `now_ms`, only a settled or returned permit helps.

    `detail` is a sentence for people where the reason alone does not say enough.
    """

    until_ms: int
    reason: WaitReason
    now_ms: int
    mark: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongClock:
    """Redis' clock reads `now_ms`, which is not what the caller expects. Nothing was changed."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The limiter recorded the report."""

    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost:
    """Another pump serves the account, or may: stop. The settled and returned permits were recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Redis lacks state for this account and action, or has another state than the caller knows.

    Rebuild the state from the ledger, then ask again.
    """

    now_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """Redis does not answer, so nothing may leave. The call may have changed the state: no mark is known any more."""

    reason: str


Noted = Done | LeaseLost | Forgotten | Away


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The used part of an account's limits. None for a minute or an hour that no cap needs.

    planned  permits among them whose time has not come: their messages have not left.
    long     the long spans that have a cap, by the name of the cap.
    new_day, new_week  new people of the day, and of the week where that has a cap.
    rights   rights among them for messages that have no result yet; known people and groups give theirs back.
    """

    minute: int | None
    hour: int | None
    day: int
    planned: int
    free_at_ms: int
    held_until_ms: int
    long: Mapping[str, int] = field(default_factory=dict)
    new_day: int = 0
    new_week: int | None = None
    rights: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for `want` units of `cost` messages, with a report on permits that were granted before.

    gaps_ms   the time to leave free after each wanted unit.
    settled   permits whose messages are finished, whatever their outcome, each with the latest time at which the
              receiver can have seen the message: when its answer came, or when it was given up.
    returned  permits and rights that were not used. A permit that is already settled stays so.
    people    messages to new people: in a span a person counts once, until their last message has left it.
    people_under_way  messages to new people on their way that have no right.
    new_wanted  how many of the units may go to new people, at most.
    free_at_ms  the end of the gap after the last unit as it really began, which may be later than planned.
    mark      that of the last answer. The limiter drops a state with another mark: it is not the one that the
              caller knows, since Redis came back with older data, or since somebody else changed it.
    expected  the range that Redis' clock may read; None where the caller does not check.
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
    people: Sequence[Met] = ()
    people_under_way: int = 0
    new_wanted: int = 0
    free_at_ms: int = 0
    mark: str = ""
    expected: Expected | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The ledger's knowledge of an account and action, for a limiter that lost its state.

    day, day_used  the day, and its messages, those in flight included.
    reach_ms       how far back `times_ms` goes: `Limiter.reach_ms(pace)`, or further.
    times_ms       when messages were seen at the latest. A message that a dead pump may still have under way
                   belongs here too, at the latest time at which it can arrive.
    in_flight      permits that the asking pump holds, each with the start of its unit; the pump settles or returns
                   them later, as if nothing had been lost.
    counts         the messages that were seen in each long span that has a cap, by its milliseconds: how many in each
                   bucket, which is so many times `pacing.bucket_width` since 1970.
    rights         as `in_flight`, the rights that the asking pump holds.
    new_used, new_counts  as `day_used` and `counts`, new people; only if `counts_people`.
    new_late       when those of the new people of the day were written to who were after its end.
    batch          messages of the current batch, those in flight included.
    last_ms        the start of the last message that is not in flight, however old; 0 if there was none.
    free_at_ms     the end of the gap after the last message.
    held_until_ms  nothing is granted before this time.
    """

    day: Day
    day_used: int
    reach_ms: int
    times_ms: Sequence[int] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    rights: Mapping[str, int] = field(default_factory=dict)
    counts_people: bool = False
    new_used: int = 0
    new_late: Sequence[int] = ()
    new_counts: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    batch: int = 0
    last_ms: int = 0
    free_at_ms: int = 0
    held_until_ms: int = 0
