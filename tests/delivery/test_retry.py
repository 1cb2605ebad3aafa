import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.models import Account
from delivery.outcomes import (
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
from delivery.retry import Effect, RetryRules, Verdict, backoff, decide
from delivery.states import TargetStatus, TroubleKind

RULES = RetryRules()
PENDING, SENT, FAILED = TargetStatus.PENDING, TargetStatus.SENT, TargetStatus.FAILED
UNCONFIRMED = TargetStatus.UNCONFIRMED
MINUTE, HOUR = 60.0, 3600.0
modestly = settings(max_examples=150, deadline=None)

reasons = st.text(min_size=1, max_size=20)
waits = st.none() | st.floats()
outcomes = st.one_of(
    st.builds(Sent),
    st.builds(RateLimited, after=waits),
    st.builds(NotConnected, after=waits),
    st.builds(Unreachable, reason=reasons, after=waits),
    st.builds(ServerError, reason=reasons, after=waits, everybody=st.booleans()),
    st.builds(TryAgain, reason=reasons, after=waits),
    st.builds(HeldBack, reason=reasons),
    st.builds(Rejected, reason=reasons, code=st.sampled_from(["", "404", "463"])),
    st.builds(AccountBlocked, reason=reasons),
    st.builds(Unknown, reason=reasons),
)
# What only the account or its gateway can cause.
surely_the_accounts = st.one_of(
    st.builds(RateLimited, after=waits),
    st.builds(NotConnected, after=waits),
    st.builds(Unreachable, reason=reasons, after=waits),
    st.builds(ServerError, reason=reasons, after=waits, everybody=st.just(True)),
)


def ruled(
    outcome: Outcome, attempt: int = 1, *, keys: bool = False, streak: int = 1, lasted: float = 0.0
) -> Verdict:
    return decide(outcome, attempt=attempt, idempotent=keys, rules=RULES, streak=streak, lasted=lasted)


# What the account or its gateway caused.


@pytest.mark.parametrize(
    ("outcome", "streak", "hold", "effect"),
    [
        # Rate limited: a minute, then longer each time up to an hour; or as the service says.
        (RateLimited(), 1, 60, Effect.SLOW_DOWN),
        (RateLimited(), 3, 240, Effect.SLOW_DOWN),
        (RateLimited(), 30, HOUR, Effect.SLOW_DOWN),
        (RateLimited(after=7.5), 1, 7.5, Effect.SLOW_DOWN),
        (RateLimited(after=7.5), 9, 7.5, Effect.SLOW_DOWN),
        # A week is too long to believe; less than nothing is no answer.
        (RateLimited(after=7 * 86_400), 1, 86_400, Effect.SLOW_DOWN),
        (RateLimited(after=math.inf), 1, 86_400, Effect.SLOW_DOWN),
        (RateLimited(after=0), 1, 60, Effect.SLOW_DOWN),
        (RateLimited(after=-5), 1, 60, Effect.SLOW_DOWN),
        (RateLimited(after=math.nan), 1, 60, Effect.SLOW_DOWN),
        # Not connected: 20 seconds, 40, 80, up to five minutes; or as the gateway says.
        (NotConnected(), 1, 20, Effect.HOLD),
        (NotConnected(), 2, 40, Effect.HOLD),
        (NotConnected(), 9, 5 * MINUTE, Effect.HOLD),
        (NotConnected(after=3), 4, 3, Effect.HOLD),
        # Nobody there: 5 seconds, 10, 20, 40, up to five minutes.
        (Unreachable(reason="refused"), 1, 5, Effect.HOLD),
        (Unreachable(reason="refused"), 4, 40, Effect.HOLD),
        (Unreachable(reason="refused"), 50, 5 * MINUTE, Effect.HOLD),
        # The service takes nothing from anybody, and may say for how long.
        (ServerError(reason="503", everybody=True), 1, 5, Effect.HOLD),
        (ServerError(reason="503", everybody=True), 3, 20, Effect.HOLD),
        (ServerError(reason="503", everybody=True, after=90), 1, 90, Effect.HOLD),
        # Five in a row are the service's, whoever they were for.
        (ServerError(reason="500"), 5, 5, Effect.HOLD),
        (ServerError(reason="500"), 7, 20, Effect.HOLD),
        (ServerError(reason="500", after=90), 5, 90, Effect.HOLD),
    ],
)
@pytest.mark.parametrize("attempt", [1, 4, 5, 9])
def test_trouble_of_the_account_holds_it_and_counts_no_attempt(
    outcome: Outcome, streak: int, hold: float, effect: Effect, attempt: int
) -> None:
    verdict = ruled(outcome, attempt, streak=streak)
    assert (verdict.target, verdict.counts) == (PENDING, False)
    assert (verdict.hold, verdict.effect) == (hold, effect)
    assert verdict.trouble is not None


@pytest.mark.parametrize(
    ("outcome", "keeps_its_place"),
    [
        (RateLimited(), True),
        (NotConnected(), True),
        (Unreachable(reason="refused"), True),
        # It may be this message that the service fails on: others are tried before it.
        (ServerError(reason="500"), False),
    ],
)
def test_a_target_keeps_its_place_where_its_message_cannot_be_the_cause(
    outcome: Outcome, keeps_its_place: bool
) -> None:
    verdict = ruled(outcome, streak=5)
    assert verdict.hold is not None
    if keeps_its_place:
        assert verdict.retry_after is None
    else:
        assert verdict.retry_after is not None
        assert verdict.retry_after > verdict.hold


@pytest.mark.parametrize(
    ("outcome", "lasted", "effect"),
    [
        (Unreachable(reason="refused"), 29 * MINUTE, Effect.HOLD),
        (Unreachable(reason="refused"), 30 * MINUTE, Effect.OFFLINE),
        (NotConnected(), 30 * MINUTE, Effect.OFFLINE),
        (NotConnected(after=3), 9 * HOUR, Effect.OFFLINE),
        # These answer, so they are not offline, however long it lasts.
        (RateLimited(), 9 * HOUR, Effect.SLOW_DOWN),
        (ServerError(reason="500"), 9 * HOUR, Effect.HOLD),
        (Unknown(reason="500"), 9 * HOUR, Effect.HOLD),
    ],
)
def test_what_lasts_takes_an_account_offline_only_where_nobody_is_there(
    outcome: Outcome, lasted: float, effect: Effect
) -> None:
    assert ruled(outcome, streak=9, lasted=lasted).effect is effect


@modestly
@given(surely_the_accounts, st.integers(1, 50), st.booleans(), st.integers(1, 500), st.floats(0, 1e6))
def test_what_the_account_caused_is_never_held_against_a_recipient(
    outcome: Outcome, attempt: int, keys: bool, streak: int, lasted: float
) -> None:
    verdict = ruled(outcome, attempt, keys=keys, streak=streak, lasted=lasted)
    assert (verdict.target, verdict.counts) == (PENDING, False)


@modestly
@given(surely_the_accounts, st.integers(1, 500))
def test_the_wait_grows_and_has_a_longest(outcome: Outcome, streak: int) -> None:
    now, next_time = (ruled(outcome, streak=each).hold or 0 for each in (streak, streak + 1))
    assert 0 < now <= next_time <= 86_400


# What a recipient caused.


@pytest.mark.parametrize(
    ("outcome", "attempt", "target", "retry_after"),
    [
        # Not now: minutes, then hours, and after a day no more.
        (TryAgain(reason="greylisted"), 1, PENDING, 5 * MINUTE),
        (TryAgain(reason="greylisted"), 2, PENDING, 15 * MINUTE),
        (TryAgain(reason="greylisted"), 3, PENDING, 30 * MINUTE),
        (TryAgain(reason="greylisted"), 4, PENDING, HOUR),
        (TryAgain(reason="greylisted"), 8, PENDING, 8 * HOUR),
        (TryAgain(reason="greylisted"), 9, FAILED, None),
        # As the service asks, the first time; it is not asked as often again.
        (TryAgain(reason="too often", after=6), 1, PENDING, 6),
        (TryAgain(reason="too often", after=6), 2, PENDING, 5 * MINUTE),
        (TryAgain(reason="greylisted", after=600), 2, PENDING, 600),
        (TryAgain(reason="not today", after=86_400), 1, PENDING, 86_400),
        (TryAgain(reason="not today", after=math.inf), 4, PENDING, 86_400),
        (TryAgain(reason="not today", after=86_400), 5, FAILED, None),
        (TryAgain(reason="greylisted", after=math.nan), 1, PENDING, 5 * MINUTE),
        # Refused for good: no retry, not even at the first attempt.
        (Rejected(reason="no such group"), 1, FAILED, None),
    ],
)
def test_a_recipient_who_cannot_get_it_holds_up_nobody_else(
    outcome: Outcome, attempt: int, target: TargetStatus, retry_after: float | None
) -> None:
    verdict = ruled(outcome, attempt)
    assert (verdict.target, verdict.retry_after) == (target, retry_after)
    assert (verdict.counts, verdict.hold, verdict.effect) == (True, None, Effect.CLEAR)


def test_a_recipient_is_tried_for_a_day() -> None:
    assert 23 * HOUR < sum(RULES.recipient_waits) <= 24 * HOUR
    assert list(RULES.recipient_waits) == sorted(RULES.recipient_waits)


@pytest.mark.parametrize(
    ("attempt", "target", "retry_after"),
    [(1, PENDING, 5), (2, PENDING, 10), (3, PENDING, 20), (4, PENDING, 40), (5, FAILED, None)],
)
def test_a_server_that_fails_on_one_message_alone_is_given_up_after_five(
    attempt: int, target: TargetStatus, retry_after: float | None
) -> None:
    verdict = ruled(ServerError(reason="500"), attempt)
    assert (verdict.target, verdict.retry_after) == (target, retry_after)
    assert (verdict.counts, verdict.effect) == (True, Effect.COUNT)


@pytest.mark.parametrize("attempt", [1, 5, 50])
def test_new_chats_that_are_locked_are_the_account_s_trouble_and_fail_nobody(attempt: int) -> None:
    verdict = ruled(Rejected(reason="locked", code="463"), attempt)
    assert (verdict.target, verdict.effect, verdict.counts) == (PENDING, Effect.FIRST_CONTACTS, False)
    assert verdict.retry_after == 3600, "else somebody whom we take for known would be asked for at once"


# What is in doubt.


@pytest.mark.parametrize(
    ("keys", "attempt", "streak", "target", "wait", "hold"),
    [
        # With a key the same message can be sent again, and is still in doubt after the last attempt.
        (True, 1, 1, PENDING, 5, None),
        (True, 4, 4, PENDING, 40, None),
        (True, 5, 1, UNCONFIRMED, None, None),
        # A handful in a row: it is the service, and it is tried with one message at a time.
        (True, 1, 5, PENDING, 10, 5),
        (True, 5, 7, PENDING, 40, 20),
        # Without a key it is never sent again by itself.
        (False, 1, 1, UNCONFIRMED, None, None),
        (False, 1, 4, UNCONFIRMED, None, None),
        (False, 1, 5, UNCONFIRMED, None, 30),
        (False, 1, 7, UNCONFIRMED, None, 120),
        (False, 1, 50, UNCONFIRMED, None, 300),
    ],
)
def test_what_may_have_arrived(
    keys: bool, attempt: int, streak: int, target: TargetStatus, wait: float | None, hold: float | None
) -> None:
    verdict = ruled(Unknown(reason="cut"), attempt, keys=keys, streak=streak)
    assert (verdict.target, verdict.retry_after, verdict.hold) == (target, wait, hold)
    assert verdict.effect is (Effect.HOLD if hold else Effect.COUNT)


@modestly
@given(st.integers(1, 50), st.booleans(), st.integers(1, 50))
def test_what_may_have_arrived_is_never_called_failed(attempt: int, keys: bool, streak: int) -> None:
    verdict = ruled(Unknown(reason="cut"), attempt, keys=keys, streak=streak)
    assert verdict.target in {PENDING, UNCONFIRMED}
    assert keys or verdict.target is UNCONFIRMED


# The rest.


def test_what_was_taken_ends_all_trouble() -> None:
    assert ruled(Sent(provider_id="1"), 5, streak=9) == Verdict(target=SENT, effect=Effect.CLEAR)


def test_a_blocked_account_is_flagged_and_its_target_waits_for_it() -> None:
    verdict = ruled(AccountBlocked(reason="banned"), 5)
    assert (verdict.target, verdict.counts, verdict.effect) == (PENDING, False, Effect.FLAG)


def test_what_we_held_back_ourselves_is_nobodys_trouble() -> None:
    verdict = ruled(HeldBack(reason="stood still"), 5)
    assert verdict == Verdict(target=PENDING, error="stood still", counts=False)


@pytest.mark.parametrize(
    ("outcome", "attempt", "error"),
    [
        (Sent(), 1, ""),
        (RateLimited(reason="slow down"), 5, "slow down"),
        (NotConnected(), 5, "account not connected"),
        (Unreachable(reason="connection refused"), 9, "connection refused"),
        (ServerError(reason="500"), 4, "500"),
        (ServerError(reason="500"), 5, "500 (gave up after 5 attempts)"),
        (TryAgain(reason="greylisted"), 9, "greylisted (gave up after 9 attempts)"),
        (Rejected(reason="not a member"), 1, "not a member"),
        (Rejected(reason="not a member", code="403"), 1, "not a member (403)"),
        (AccountBlocked(reason="logged out"), 1, "logged out"),
        (Unknown(reason="read timeout"), 1, "read timeout"),
    ],
)
def test_the_error_says_what_happened(outcome: Outcome, attempt: int, error: str) -> None:
    assert ruled(outcome, attempt).error == error


@modestly
@given(outcomes, st.integers(1, 50), st.booleans(), st.integers(1, 10), st.integers(1, 50), st.floats(0, 1e6))
def test_every_outcome_has_a_verdict_that_makes_sense(
    outcome: Outcome, attempt: int, keys: bool, max_attempts: int, streak: int, lasted: float
) -> None:
    rules = RetryRules(max_attempts=max_attempts)
    verdict = decide(outcome, attempt=attempt, idempotent=keys, rules=rules, streak=streak, lasted=lasted)
    assert (verdict.target is SENT) == isinstance(outcome, Sent)
    assert (verdict.error == "") == isinstance(outcome, Sent)
    assert (verdict.hold is None) == (verdict.trouble is None)
    assert (verdict.hold is not None) == (verdict.effect in {Effect.HOLD, Effect.SLOW_DOWN, Effect.OFFLINE})
    for wait in (verdict.retry_after, verdict.hold):
        assert wait is None or 0 < wait <= 2 * 86_400
    if verdict.target is PENDING and verdict.counts:
        assert verdict.retry_after is not None, "else it would be tried again at once, and fail at once"


@pytest.mark.parametrize("attempt", [11, 100, 1_000_000])
def test_the_delay_has_a_longest(attempt: int) -> None:
    assert backoff(attempt, RULES) == RULES.backoff_max == 3600


def test_rules_are_settings() -> None:
    rules = RetryRules(
        max_attempts=2,
        rate_limited_after=30,
        not_connected_after=10,
        unreachable_after=2,
        server_wait_max=100,
        backoff_base=1,
        handful=3,
    )
    told = (RateLimited(), NotConnected(), Unreachable(reason="gone"), RateLimited(after=500))
    verdicts = [decide(outcome, attempt=1, idempotent=False, rules=rules) for outcome in told]
    assert [verdict.hold for verdict in verdicts] == [30, 10, 2, 100]
    failing = ServerError(reason="500")
    assert decide(failing, attempt=2, idempotent=False, rules=rules).target is FAILED
    assert decide(failing, attempt=2, idempotent=False, rules=rules, streak=3).target is PENDING


@pytest.mark.parametrize("never", [{"attempt": 0}, {"attempt": 1, "streak": 0}])
def test_an_attempt_that_was_never_made_is_refused(never: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the first is 1"):
        decide(Sent(), idempotent=False, rules=RULES, **never)


def test_something_that_is_no_outcome_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        decide("sent", attempt=1, idempotent=False, rules=RULES)  # type: ignore[arg-type]  # the bug itself


def test_every_kind_of_outcome_effect_and_trouble_is_covered() -> None:
    examples = (
        Sent(),
        RateLimited(),
        NotConnected(),
        Unreachable(reason="refused"),
        ServerError(reason="500"),
        TryAgain(reason="greylisted"),
        HeldBack(reason="late"),
        Rejected(reason="no"),
        Rejected(reason="locked", code="463"),
        AccountBlocked(reason="banned"),
        Unknown(reason="cut"),
    )
    verdicts = {
        ruled(outcome, streak=streak, lasted=lasted)
        for outcome in examples
        for streak in (1, 5)
        for lasted in (0, HOUR)
    }
    assert {type(outcome) for outcome in examples} == set(get_args(Outcome))
    assert {verdict.effect for verdict in verdicts} == set(Effect)
    assert {verdict.trouble for verdict in verdicts} == {None, *TroubleKind}


def test_the_accounts_of_the_database_know_the_same_troubles() -> None:
    assert set(Account.Trouble.values) == set(TroubleKind)
