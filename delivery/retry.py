"""Decides what an outcome does to the target and to the account, for all transports (SPEC P7, R7).

A failure counts against its cause. A failure of the account or its gateway holds the account, longer each time, and
counts no attempt of a recipient. A failure of the recipient counts an attempt, and holds nobody else. A message in
doubt is never sent again without a key, and a few doubts in a row hold the account. docs/lifecycle.md has the same as
a table.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from delivery.outcomes import (
    NO_NEW_CHATS,
    AccountBlocked,
    HeldBack,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.states import TargetStatus, TroubleKind

_LARGEST_EXPONENT = 60  # more would only overflow; the longest wait applies long before
_MINUTE = 60.0


class Effect(StrEnum):
    """The effect of an outcome on the account that sent."""

    NONE = "none"
    CLEAR = "clear"  # its service works: its trouble is over
    COUNT = "count"  # one more failure in a row; enough of them hold it
    HOLD = "hold"  # nothing leaves for `hold` seconds, then one message at a time tries it out
    SLOW_DOWN = "slow_down"  # the same, and it sends more slowly from then on
    OFFLINE = "offline"  # its trouble has lasted too long: its runs pause until it is back
    FLAG = "flag"  # its service blocked it: its runs pause and its owner is told
    FIRST_CONTACTS = "first_contacts"  # it may write only to people whom it has written to before


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """The settings of a retry; times are seconds."""

    max_attempts: int = 5  # counts only failures of the recipient
    backoff_base: float = 5.0
    backoff_max: float = 3600.0
    # Waits for a recipient who cannot receive for now; after the last one, a day in all, the target fails.
    recipient_waits: tuple[float, ...] = tuple(
        _MINUTE * minutes for minutes in (5, 15, 30, 60, 120, 240, 480, 480)
    )
    rate_limited_after: float = 60.0
    not_connected_after: float = 20.0
    unreachable_after: float = 5.0
    in_doubt_after: float = 30.0  # each try may leave one more message for a person to decide on
    hold_max: float = 5 * _MINUTE
    handful: int = 5  # failures in a row that count as the service's fault, not the messages'
    offline_after: float = 30 * _MINUTE
    server_wait_max: float = 86_400.0  # a service may ask for a week; it is tried again after a day


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The consequences of one attempt for a target and for its account.

    `retry_after` is how many seconds the target itself waits. None means that the target keeps its place, and leaves as
    soon as its account and its run allow. `counts` says whether the attempt counts against the recipient. `hold` is how
    many seconds the account waits, and `trouble` says why.
    """

    target: TargetStatus
    retry_after: float | None = None
    error: str = ""
    effect: Effect = Effect.NONE
    counts: bool = True
    hold: float | None = None
    trouble: TroubleKind | None = None


def decide(
    outcome: Outcome,
    *,
    attempt: int,
    idempotent: bool,
    rules: RetryRules,
    streak: int = 1,
    lasted: float = 0.0,
    shared: bool = False,
) -> Verdict:
    """Decide on `outcome` of a target's attempt number `attempt` (1 is the first).

    `streak` says how many failures in a row, this one included, were not caused by a recipient; `lasted` for how many
    seconds the account has been in trouble; `shared` that others met the same failure. `idempotent` says that the
    transport takes a key: a message that may have arrived is then sent again with the same key. Without a key it is
    never sent again automatically, since a person may receive it twice.
    """
    if attempt < 1 or streak < 1:
        raise ValueError(f"Attempt {attempt} of a streak of {streak} was never made: the first is 1.")
    match outcome:
        case Sent():
            verdict = Verdict(target=TargetStatus.SENT, effect=Effect.CLEAR)
        case RateLimited():
            verdict = _rate_limited(outcome, streak, rules)
        case NotConnected() | Unreachable():
            verdict = _away(outcome, streak, lasted, rules)
        case ServerError():
            verdict = _server_error(outcome, attempt, streak, rules, shared=shared)
        case TryAgain():
            verdict = _not_now(outcome, attempt, rules)
        case Rejected():
            verdict = _rejected(outcome, rules)
        case AccountBlocked(reason=reason) | HeldBack(reason=reason):
            effect = Effect.FLAG if isinstance(outcome, AccountBlocked) else Effect.NONE
            verdict = Verdict(target=TargetStatus.PENDING, error=reason, effect=effect, counts=False)
        case Unknown():
            verdict = (
                _doubt_with_key(outcome, attempt, streak, rules, shared=shared)
                if idempotent
                else _doubt(outcome, streak, rules)
            )
        case _:
            assert_never(outcome)
    return verdict


def backoff(attempt: int, rules: RetryRules) -> float:
    """Return `base * 2^(n-1)` seconds to wait after the n-th attempt, up to `backoff_max`."""
    return _grown(rules.backoff_base, attempt, rules.backoff_max)


def _grown(base: float, times: int, most: float) -> float:
    """Return `base`, doubled with every further time, up to `most` or to `base` itself where that is more."""
    return min(base * 2.0 ** min(times - 1, _LARGEST_EXPONENT), max(base, most))


def _rate_limited(outcome: RateLimited, streak: int, rules: RetryRules) -> Verdict:
    """Hold the account as long as its service asks; however long that lasts, it is not offline."""
    usual = _grown(rules.rate_limited_after, streak, rules.backoff_max)
    wait = _wait(outcome.after, usual, rules)
    return _held(TroubleKind.RATE_LIMITED, outcome.reason, wait, effect=Effect.SLOW_DOWN)


def _away(outcome: NotConnected | Unreachable, streak: int, lasted: float, rules: RetryRules) -> Verdict:
    """Hold the account whose service cannot be reached or has no connection; after a while it is offline."""
    if isinstance(outcome, NotConnected):
        trouble, base = TroubleKind.NOT_CONNECTED, rules.not_connected_after
    else:
        trouble, base = TroubleKind.UNREACHABLE, rules.unreachable_after
    wait = _wait(outcome.after, _grown(base, streak, rules.hold_max), rules)
    effect = Effect.OFFLINE if lasted >= rules.offline_after else Effect.HOLD
    return _held(trouble, outcome.reason, wait, effect=effect)


def _held(
    trouble: TroubleKind, reason: str, hold: float, *, effect: Effect = Effect.HOLD, behind: bool = False
) -> Verdict:
    """Hold the account, and do not count the attempt against the recipient.

    With `behind` the target goes behind those of others at the next try, since its message may be the reason why the
    service fails. Else it keeps its place.
    """
    return Verdict(
        target=TargetStatus.PENDING,
        retry_after=2 * hold if behind else None,
        error=reason,
        effect=effect,
        counts=False,
        hold=hold,
        trouble=trouble,
    )


def _server_error(
    outcome: ServerError, attempt: int, streak: int, rules: RetryRules, *, shared: bool
) -> Verdict:
    """Try again soon after a single failure, counted as the recipient's.

    A failure for everybody, several in a row, or one that others met too, count as the service's.
    """
    if outcome.everybody or shared or streak >= rules.handful:
        times = streak if outcome.everybody else max(1, streak - rules.handful + 1)
        wait = _wait(outcome.after, _grown(rules.backoff_base, times, rules.hold_max), rules)
        return _held(TroubleKind.SERVER_ERRORS, outcome.reason, wait, behind=True)
    return _back_off(outcome.reason, attempt, rules, give_up=TargetStatus.FAILED)


def _doubt_with_key(
    outcome: Unknown, attempt: int, streak: int, rules: RetryRules, *, shared: bool
) -> Verdict:
    """Send the message again with the same key, so that it is delivered once."""
    if shared or streak >= rules.handful:
        wait = _grown(rules.backoff_base, max(1, streak - rules.handful + 1), rules.hold_max)
        return _held(TroubleKind.IN_DOUBT, outcome.reason, wait, behind=True)
    return _back_off(outcome.reason, attempt, rules, give_up=TargetStatus.UNCONFIRMED)


def _doubt(outcome: Unknown, streak: int, rules: RetryRules) -> Verdict:
    """Leave the decision to a person; after a few doubts in a row, test the service before there are more of them."""
    if streak < rules.handful:
        return Verdict(target=TargetStatus.UNCONFIRMED, error=outcome.reason, effect=Effect.COUNT)
    return Verdict(
        target=TargetStatus.UNCONFIRMED,
        error=outcome.reason,
        effect=Effect.HOLD,
        hold=_grown(rules.in_doubt_after, streak - rules.handful + 1, rules.hold_max),
        trouble=TroubleKind.IN_DOUBT,
    )


def _back_off(reason: str, attempt: int, rules: RetryRules, *, give_up: TargetStatus) -> Verdict:
    """Let the target wait, longer each time; its account continues, and counts the failure."""
    if attempt >= rules.max_attempts:
        return Verdict(target=give_up, error=_gave_up(reason, attempt), effect=Effect.COUNT)
    wait = backoff(attempt, rules)
    return Verdict(target=TargetStatus.PENDING, retry_after=wait, error=reason, effect=Effect.COUNT)


def _not_now(outcome: TryAgain, attempt: int, rules: RetryRules) -> Verdict:
    """Let the recipient wait for minutes, then hours; the first time as long as the service asks, if it does."""
    asked, waits = _wait(outcome.after, 0.0, rules), rules.recipient_waits
    most = rules.max_attempts if asked > waits[-1] else len(waits) + 1
    if attempt >= most:
        error = _gave_up(outcome.reason, attempt)
        return Verdict(target=TargetStatus.FAILED, error=error, effect=Effect.CLEAR)
    # Where the service's own wait was too short the first time, our longer waits follow.
    usual = waits[attempt - 1] if not asked else waits[attempt - 2] if attempt > 1 else 0.0
    return Verdict(
        target=TargetStatus.PENDING,
        retry_after=max(asked, usual),
        error=outcome.reason,
        effect=Effect.CLEAR,
    )


def _rejected(outcome: Rejected, rules: RetryRules) -> Verdict:
    """Fail the target for good, unless the account may not write to new people for a while.

    Such a lock lets new people wait until it is over. A recipient that we count as known waits an hour at a time.
    """
    if outcome.code in NO_NEW_CHATS:
        return Verdict(
            target=TargetStatus.PENDING,
            retry_after=rules.backoff_max,
            error=outcome.reason,
            effect=Effect.FIRST_CONTACTS,
            counts=False,
        )
    error = f"{outcome.reason} ({outcome.code})" if outcome.code else outcome.reason
    return Verdict(target=TargetStatus.FAILED, error=error, effect=Effect.CLEAR)


def _wait(asked: float | None, usual: float, rules: RetryRules) -> float:
    """Return the wait that the service asked for; ignore one that is zero, negative or not a number."""
    return min(asked, rules.server_wait_max) if asked is not None and asked > 0 else usual


def _gave_up(reason: str, attempt: int) -> str:
    return f"{reason} (gave up after {attempt} attempts)"
