"""What an outcome does to the target and to the account: one decision for all transports (SPEC P7, R7)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from delivery.outcomes import (
    FIRST_CONTACTS_LOCKED,
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    TryAgain,
    Unknown,
)
from delivery.states import TargetStatus

_LARGEST_EXPONENT = 60  # more would only overflow; `backoff_max` has cut it long before


class Effect(StrEnum):
    """What happens to the account that sent."""

    NONE = "none"
    SLOW_DOWN = "slow_down"  # hold it for `retry_after`, and send more slowly from then on
    HOLD = "hold"  # hold it for `retry_after`: its session is down
    OFFLINE = "offline"  # its session stayed down: its runs pause until it is back
    FLAG = "flag"  # its service blocked it: its runs pause and its owner is told
    FIRST_CONTACTS = "first_contacts"  # it may write only to those whom it has written to before


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryKnobs:
    """The settings of a retry; all but `max_attempts` are seconds."""

    max_attempts: int = 5
    backoff_base: float = 5.0
    backoff_max: float = 3600.0
    rate_limited_after: float = 60.0
    not_connected_after: float = 20.0
    server_wait_max: float = 86_400.0  # a service may ask for a week; after a day it is asked again


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a target after one attempt.

    `retry_after` is how many seconds a pending target waits, and for how long SLOW_DOWN and HOLD hold the
    account; None is no wait of its own: the target goes as soon as its account and its run let it.
    """

    target: TargetStatus
    retry_after: float | None = None
    error: str = ""
    effect: Effect = Effect.NONE


def decide(outcome: Outcome, *, attempt: int, idempotent: bool, knobs: RetryKnobs) -> Verdict:
    """What `outcome` of the attempt number `attempt` (1 is the first) does.

    `idempotent` says that the transport takes a key: a message that may have arrived is then sent again with
    the same one. Without a key it never is by itself, since a person may receive it twice.
    """
    if attempt < 1:
        raise ValueError(f"Attempt {attempt} was never made: the first is 1.")
    match outcome:
        case Sent():
            verdict = Verdict(target=TargetStatus.SENT)
        case RateLimited():
            verdict = _rate_limited(outcome, attempt, knobs)
        case NotConnected():
            verdict = _not_connected(outcome, attempt, knobs)
        case TryAgain(reason=reason, after=after):
            verdict = _back_off(reason, attempt, knobs, give_up=TargetStatus.FAILED, asked=after)
        case Rejected():
            verdict = _rejected(outcome, attempt, knobs)
        case AccountBlocked(reason=reason):
            verdict = Verdict(target=TargetStatus.PENDING, error=reason, effect=Effect.FLAG)
        case Unknown(reason=reason) if idempotent:
            verdict = _back_off(reason, attempt, knobs, give_up=TargetStatus.UNCONFIRMED)
        case Unknown(reason=reason):
            verdict = Verdict(target=TargetStatus.UNCONFIRMED, error=reason)
        case _:
            assert_never(outcome)
    return verdict


def backoff(attempt: int, knobs: RetryKnobs) -> float:
    """`base * 2^(n-1)` seconds after the n-th attempt, up to `backoff_max`."""
    return min(knobs.backoff_base * 2.0 ** min(attempt - 1, _LARGEST_EXPONENT), knobs.backoff_max)


def _rate_limited(outcome: RateLimited, attempt: int, knobs: RetryKnobs) -> Verdict:
    """Too many attempts fail the target, but the service still asked the account for less."""
    last = attempt >= knobs.max_attempts
    return Verdict(
        target=TargetStatus.FAILED if last else TargetStatus.PENDING,
        retry_after=_wait(outcome.after, knobs.rate_limited_after, knobs),
        error=_gave_up(outcome.reason, attempt) if last else outcome.reason,
        effect=Effect.SLOW_DOWN,
    )


def _not_connected(outcome: NotConnected, attempt: int, knobs: RetryKnobs) -> Verdict:
    """The recipient is not at fault, so the target stays pending however often this happens."""
    if attempt >= knobs.max_attempts:
        return Verdict(target=TargetStatus.PENDING, error=outcome.reason, effect=Effect.OFFLINE)
    return Verdict(
        target=TargetStatus.PENDING,
        retry_after=_wait(outcome.after, knobs.not_connected_after, knobs),
        error=outcome.reason,
        effect=Effect.HOLD,
    )


def _rejected(outcome: Rejected, attempt: int, knobs: RetryKnobs) -> Verdict:
    """For good; unless it is the account that may not write to strangers for a while."""
    if outcome.code == FIRST_CONTACTS_LOCKED and attempt < knobs.max_attempts:
        return Verdict(target=TargetStatus.PENDING, error=outcome.reason, effect=Effect.FIRST_CONTACTS)
    error = f"{outcome.reason} ({outcome.code})" if outcome.code else outcome.reason
    return Verdict(target=TargetStatus.FAILED, error=error)


def _back_off(
    reason: str, attempt: int, knobs: RetryKnobs, *, give_up: TargetStatus, asked: float | None = None
) -> Verdict:
    """The target waits longer each time, and at least as long as was asked for; its account goes on."""
    if attempt >= knobs.max_attempts:
        return Verdict(target=give_up, error=_gave_up(reason, attempt))
    usual = backoff(attempt, knobs)
    wait = max(_wait(asked, usual, knobs), usual)
    return Verdict(target=TargetStatus.PENDING, retry_after=wait, error=reason)


def _wait(asked: float | None, usual: float, knobs: RetryKnobs) -> float:
    """What the service asked for; a wait of nothing, a negative one or no number at all is no answer."""
    return min(asked, knobs.server_wait_max) if asked is not None and asked > 0 else usual


def _gave_up(reason: str, attempt: int) -> str:
    return f"{reason} (gave up after {attempt} attempts)"
