import math
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    TryAgain,
    Unknown,
)
from delivery.retry import Effect, RetryKnobs, Verdict, backoff, decide
from delivery.states import TargetStatus

KNOBS = RetryKnobs()
PENDING, SENT, FAILED = TargetStatus.PENDING, TargetStatus.SENT, TargetStatus.FAILED
UNCONFIRMED = TargetStatus.UNCONFIRMED
modestly = settings(max_examples=150, deadline=None)

reasons = st.text(min_size=1, max_size=20)
waits = st.none() | st.floats()
outcomes = st.one_of(
    st.builds(Sent),
    st.builds(RateLimited, after=waits),
    st.builds(NotConnected, after=waits),
    st.builds(TryAgain, reason=reasons, after=waits),
    st.builds(Rejected, reason=reasons, code=st.sampled_from(["", "404", "463"])),
    st.builds(AccountBlocked, reason=reasons),
    st.builds(Unknown, reason=reasons),
)


@pytest.mark.parametrize(
    ("outcome", "attempt", "idempotent", "target", "retry_after", "effect"),
    [
        # Taken, at the first or the last attempt.
        (Sent(provider_id="1"), 1, False, SENT, None, Effect.NONE),
        (Sent(), 5, False, SENT, None, Effect.NONE),
        # Rate limited: a minute, or as the service says.
        (RateLimited(), 1, False, PENDING, 60, Effect.SLOW_DOWN),
        (RateLimited(after=7.5), 1, False, PENDING, 7.5, Effect.SLOW_DOWN),
        (RateLimited(after=600), 4, False, PENDING, 600, Effect.SLOW_DOWN),
        # A week is too long to believe; less than nothing is no answer.
        (RateLimited(after=7 * 86_400), 1, False, PENDING, 86_400, Effect.SLOW_DOWN),
        (RateLimited(after=math.inf), 1, False, PENDING, 86_400, Effect.SLOW_DOWN),
        (RateLimited(after=0), 1, False, PENDING, 60, Effect.SLOW_DOWN),
        (RateLimited(after=-5), 1, False, PENDING, 60, Effect.SLOW_DOWN),
        (RateLimited(after=math.nan), 1, False, PENDING, 60, Effect.SLOW_DOWN),
        # Out of attempts, yet the account still has to slow down.
        (RateLimited(), 5, False, FAILED, 60, Effect.SLOW_DOWN),
        (RateLimited(after=90), 6, False, FAILED, 90, Effect.SLOW_DOWN),
        # New chats are locked: the recipient waits for the end of that, though not for ever.
        (Rejected(reason="locked", code="463"), 1, False, PENDING, None, Effect.FIRST_CONTACTS),
        (Rejected(reason="locked", code="463"), 5, False, FAILED, None, Effect.NONE),
        # Not connected: 20 seconds, or as the gateway says.
        (NotConnected(), 1, False, PENDING, 20, Effect.HOLD),
        (NotConnected(after=3), 4, False, PENDING, 3, Effect.HOLD),
        (NotConnected(after=-3), 4, False, PENDING, 20, Effect.HOLD),
        # It stays down: that is the account's fault and not the recipient's.
        (NotConnected(), 5, False, PENDING, None, Effect.OFFLINE),
        (NotConnected(after=3), 9, True, PENDING, None, Effect.OFFLINE),
        # A network failure backs off: 5, 10, 20, 40 seconds, and then fails.
        (TryAgain(reason="refused"), 1, False, PENDING, 5, Effect.NONE),
        (TryAgain(reason="refused"), 2, False, PENDING, 10, Effect.NONE),
        (TryAgain(reason="refused"), 3, True, PENDING, 20, Effect.NONE),
        (TryAgain(reason="refused"), 4, True, PENDING, 40, Effect.NONE),
        (TryAgain(reason="refused"), 5, True, FAILED, None, Effect.NONE),
        # The service wants this recipient left alone for a day; nobody else has to wait.
        (TryAgain(reason="not now", after=86_400), 1, False, PENDING, 86_400, Effect.NONE),
        (TryAgain(reason="not now", after=math.inf), 1, False, PENDING, 86_400, Effect.NONE),
        (TryAgain(reason="too often", after=6), 1, False, PENDING, 6, Effect.NONE),
        (TryAgain(reason="too often", after=6), 3, False, PENDING, 20, Effect.NONE),
        (TryAgain(reason="too often", after=math.nan), 1, False, PENDING, 5, Effect.NONE),
        # Refused for good: no retry, not even at the first attempt.
        (Rejected(reason="no such group"), 1, True, FAILED, None, Effect.NONE),
        # Blocked: the target waits for the account, at whatever attempt.
        (AccountBlocked(reason="banned"), 1, False, PENDING, None, Effect.FLAG),
        (AccountBlocked(reason="banned"), 5, True, PENDING, None, Effect.FLAG),
        # It may have arrived. With a key the same message can be sent again...
        (Unknown(reason="cut"), 1, True, PENDING, 5, Effect.NONE),
        (Unknown(reason="cut"), 4, True, PENDING, 40, Effect.NONE),
        # ...and is still in doubt after the last attempt: never `failed`, a person decides.
        (Unknown(reason="cut"), 5, True, UNCONFIRMED, None, Effect.NONE),
        # Without a key it is never sent again by itself.
        (Unknown(reason="cut"), 1, False, UNCONFIRMED, None, Effect.NONE),
        (Unknown(reason="cut"), 5, False, UNCONFIRMED, None, Effect.NONE),
    ],
)
def test_what_an_outcome_does(
    outcome: Outcome,
    attempt: int,
    idempotent: bool,
    target: TargetStatus,
    retry_after: float | None,
    effect: Effect,
) -> None:
    verdict = decide(outcome, attempt=attempt, idempotent=idempotent, knobs=KNOBS)
    assert (verdict.target, verdict.retry_after, verdict.effect) == (target, retry_after, effect)


@pytest.mark.parametrize(
    ("outcome", "attempt", "error"),
    [
        (Sent(), 1, ""),
        (RateLimited(reason="slow down"), 1, "slow down"),
        (RateLimited(reason="slow down"), 5, "slow down (gave up after 5 attempts)"),
        (NotConnected(), 5, "account not connected"),
        (TryAgain(reason="connection refused"), 4, "connection refused"),
        (TryAgain(reason="connection refused"), 5, "connection refused (gave up after 5 attempts)"),
        (Rejected(reason="not a member"), 1, "not a member"),
        (Rejected(reason="not a member", code="403"), 1, "not a member (403)"),
        (AccountBlocked(reason="logged out"), 1, "logged out"),
        (Unknown(reason="read timeout"), 1, "read timeout"),
    ],
)
def test_the_error_says_what_happened(outcome: Outcome, attempt: int, error: str) -> None:
    assert decide(outcome, attempt=attempt, idempotent=False, knobs=KNOBS).error == error


@modestly
@given(outcomes, st.integers(1, 50), st.booleans(), st.integers(1, 10))
def test_every_outcome_has_a_verdict_that_makes_sense(
    outcome: Outcome, attempt: int, idempotent: bool, max_attempts: int
) -> None:
    verdict = decide(
        outcome, attempt=attempt, idempotent=idempotent, knobs=RetryKnobs(max_attempts=max_attempts)
    )
    assert (verdict.target is SENT) == isinstance(outcome, Sent)
    assert (verdict.error == "") == isinstance(outcome, Sent)
    if verdict.retry_after is not None:
        assert 0 < verdict.retry_after <= 86_400
    if verdict.effect in {Effect.SLOW_DOWN, Effect.HOLD}:
        assert verdict.retry_after is not None
    if verdict.target is PENDING and verdict.retry_after is None:
        assert verdict.effect in {Effect.OFFLINE, Effect.FLAG, Effect.FIRST_CONTACTS}


@modestly
@given(outcomes, st.integers(5, 50), st.booleans())
def test_after_the_last_attempt_only_the_account_can_keep_a_target_pending(
    outcome: Outcome, attempt: int, idempotent: bool
) -> None:
    verdict = decide(outcome, attempt=attempt, idempotent=idempotent, knobs=KNOBS)
    if verdict.target is PENDING:
        assert verdict.effect in {Effect.OFFLINE, Effect.FLAG}


@modestly
@given(st.integers(1, 50), st.booleans())
def test_what_may_have_arrived_is_never_called_failed(attempt: int, idempotent: bool) -> None:
    verdict = decide(Unknown(reason="cut"), attempt=attempt, idempotent=idempotent, knobs=KNOBS)
    assert verdict.target in {PENDING, UNCONFIRMED}
    assert idempotent or verdict.target is UNCONFIRMED


@modestly
@given(st.integers(1, 20), st.floats(0.1, 60))
def test_the_delay_doubles_with_every_attempt(attempt: int, base: float) -> None:
    knobs = RetryKnobs(max_attempts=100, backoff_base=base, backoff_max=math.inf)
    verdict = decide(TryAgain(reason="cut"), attempt=attempt, idempotent=False, knobs=knobs)
    assert verdict.retry_after == base * 2 ** (attempt - 1)


@pytest.mark.parametrize("attempt", [11, 100, 1_000_000])
def test_the_delay_has_a_longest(attempt: int) -> None:
    assert backoff(attempt, KNOBS) == KNOBS.backoff_max == 3600


def test_knobs_are_settings() -> None:
    knobs = RetryKnobs(
        max_attempts=2, rate_limited_after=30, not_connected_after=10, server_wait_max=100, backoff_base=1
    )
    verdicts = [
        decide(outcome, attempt=1, idempotent=False, knobs=knobs)
        for outcome in (RateLimited(), NotConnected(), RateLimited(after=500), TryAgain(reason="cut"))
    ]
    assert [verdict.retry_after for verdict in verdicts] == [30, 10, 100, 1]
    assert decide(TryAgain(reason="cut"), attempt=2, idempotent=False, knobs=knobs).target is FAILED


def test_an_attempt_that_was_never_made_is_refused() -> None:
    with pytest.raises(ValueError, match="the first is 1"):
        decide(Sent(), attempt=0, idempotent=False, knobs=KNOBS)


def test_something_that_is_no_outcome_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        decide("sent", attempt=1, idempotent=False, knobs=KNOBS)  # type: ignore[arg-type]  # the bug itself


def test_every_kind_of_outcome_and_every_effect_is_covered() -> None:
    examples = (
        Sent(),
        RateLimited(),
        NotConnected(),
        TryAgain(reason="cut"),
        Rejected(reason="no"),
        Rejected(reason="locked", code="463"),
        AccountBlocked(reason="banned"),
        Unknown(reason="cut"),
    )
    verdicts: set[Verdict] = {
        decide(outcome, attempt=attempt, idempotent=False, knobs=KNOBS)
        for outcome in examples
        for attempt in (1, 5)
    }
    assert {type(outcome) for outcome in examples} == set(get_args(Outcome))
    assert {verdict.effect for verdict in verdicts} == set(Effect)
