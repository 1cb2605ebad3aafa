"""The sentence about an account, for every state that it can be in."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Account
from delivery.sentences import account_sentence
from delivery.sentences.account_sentence import AccountNow, Mood, Why, tell
from delivery.sentences.reasons import STOPPED, TROUBLES, WAITS
from delivery.states import AccountStatus, WaitReason

NOW = datetime(2026, 11, 18, 10, 45, tzinfo=UTC)
REFUSED = "connection refused, 127.0.0.1:3000"


def ahead(**span: float) -> datetime:
    return NOW + timedelta(**span)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def state(**known: Any) -> AccountNow:
    usual: dict[str, Any] = {"status": AccountStatus.ACTIVE, "running": 1}
    return AccountNow(**usual | known)


def trouble(kind: str, cause: str = REFUSED, **known: Any) -> AccountNow:
    values = {
        "trouble_kind": kind,
        "trouble": cause,
        "trouble_since": ago(minutes=1),
        "next_try": ahead(seconds=8),
    }
    return state(**values | known)


def waits(reason: WaitReason, seconds: float = 23, **known: Any) -> AccountNow:
    return state(waiting_for=reason, waiting_until=ahead(seconds=seconds), **known)


CASES = [
    # Sending
    (state(pace=1.5), "Sending, about one message every 1.5 s."),
    (state(pace=45), "Sending, about one message every 45 s."),
    (state(pace=240), "Sending, about one message every 4 min 0 s."),
    (state(), "Sending."),
    (
        state(pace=1.5, slow_factor=1.5),
        "Sending, about one message every 2.2 s. Sending 1.5 times slower after a warning from the service.",
    ),
    # A request is always under way while messages leave: that alone is no news.
    (state(pace=1.5, asked_at=ago(seconds=2)), "Sending, about one message every 1.5 s."),
    # Pacing
    (waits(WaitReason.GAP), "Next message in 23 s."),
    (
        waits(WaitReason.GAP, slow_factor=2),
        "Sending 2 times slower after a warning from the service. Next message in 23 s.",
    ),
    (waits(WaitReason.NOT_BEFORE, 7200), "The next message is planned for later. Next message 12:45."),
    (waits(WaitReason.BATCH_PAUSE, 30), "Taking a break after a batch. Continues in 30 s."),
    # Limits
    (
        waits(WaitReason.PER_MINUTE, limits={"per_minute": 40}),
        "Limit reached: 40 messages per minute. Continues in 23 s.",
    ),
    (
        waits(WaitReason.PER_HOUR, 1260, limits={"per_hour": 1200}),
        "Limit reached: 1,200 messages per hour. Continues 11:06.",
    ),
    (waits(WaitReason.PER_DAY, 14 * 3600), "Limit per day reached. Continues 19 Nov, 00:45."),
    # A request that hangs
    (state(asked_at=ago(seconds=12)), "The gateway has not answered for 12 s."),
    (
        state(asked_at=ago(seconds=75), server="the mail server"),
        "The mail server has not answered for 75 s.",
    ),
    # Trouble, by its kind
    (trouble("unreachable"), f"No answer from the gateway since 10:44 ({REFUSED}). Next try in 8 s."),
    (
        trouble("not_connected", "the gateway answered 422: session STOPPED"),
        (
            "The gateway reports that the account is not connected since 10:44 "
            "(the gateway answered 422: session STOPPED). Next try in 8 s."
        ),
    ),
    (
        trouble("rate_limited", "the gateway answered 429", next_try=ahead(minutes=21)),
        "WhatsApp asked us to slow down at 10:44 (the gateway answered 429). Next try 11:06.",
    ),
    (
        trouble("server_errors", "the gateway answered 503"),
        "The gateway answers with errors since 10:44 (the gateway answered 503). Next try in 8 s.",
    ),
    (
        trouble("in_doubt", "no answer within 20 s, 127.0.0.1:3000"),
        (
            "The gateway does not say since 10:44 whether messages arrived "
            "(no answer within 20 s, 127.0.0.1:3000). Next try in 8 s."
        ),
    ),
    (trouble("unreachable", ""), "No answer from the gateway since 10:44. Next try in 8 s."),
    # Its next try is under way
    (
        trouble("unreachable", next_try=ago(seconds=1)),
        f"No answer from the gateway since 10:44 ({REFUSED}). Trying again now.",
    ),
    (
        trouble("unreachable", next_try=ago(seconds=4), asked_at=ago(seconds=3)),
        f"No answer from the gateway since 10:44 ({REFUSED}). Trying again for 3 s.",
    ),
    # It stays until it is solved, also with nothing to send
    (
        trouble("unreachable", running=0, next_try=ago(seconds=1)),
        f"No answer from the gateway since 10:44 ({REFUSED}). The next message tries again.",
    ),
    (
        trouble("unreachable", status=AccountStatus.OFFLINE, status_reason="x", trouble_since=ago(days=2)),
        f"No answer from the gateway since 16 Nov, 10:45 ({REFUSED}). Next try in 8 s.",
    ),
    # Nothing is sent from an offline account: its service is asked
    (
        trouble("unreachable", status=AccountStatus.OFFLINE, running=0, next_try=ago(seconds=1)),
        f"No answer from the gateway since 10:44 ({REFUSED}). Trying again now.",
    ),
    # What held it before it went offline is not why
    (
        trouble(
            "rate_limited", "the gateway answered 429", status=AccountStatus.OFFLINE, status_reason="STOPPED"
        ),
        "Offline: STOPPED. Continues automatically when the connection is back.",
    ),
    # The window, Redis, the workers
    (waits(WaitReason.WINDOW, 3600), "The delivery window is closed. Opens 11:45."),
    (
        waits(WaitReason.LIMITER_AWAY, 1),
        "Redis does not answer. Nothing is sent until it does. Next try in 1 s.",
    ),
    (
        state(wake_at=ago(minutes=1), redis_answers=False),
        "Redis does not answer. Nothing is sent until it does.",
    ),
    (
        state(wake_at=ago(minutes=1)),
        "No worker serves this account since 10:44. Check that the workers run.",
    ),
    (state(wake_at=ago(seconds=20)), "Sending."),
    (
        state(waiting_for="clocks", waiting_detail="Redis is 3600 s ahead.", waiting_until=ago(seconds=9)),
        "Redis is 3600 s ahead. Nothing is sent until the clocks agree.",
    ),
    (trouble("unreachable", waiting_for="sending_stopped"), "All sending is stopped."),
    (
        state(waiting_for="media_unreadable", waiting_until=ahead(seconds=30)),
        (
            "The worker cannot read a file of the message. Check that every worker sees the media folder. "
            "Next try in 30 s."
        ),
    ),
    # Stopped
    (state(archived=True), "Archived. Nothing is sent from this account."),
    (state(status=AccountStatus.PAUSED, status_reason="paused by anna"), "Paused by anna."),
    (state(status=AccountStatus.PAUSED), "Paused by a person."),
    (
        state(status=AccountStatus.OFFLINE, status_reason="the session is STOPPED."),
        "Offline: the session is STOPPED. Continues automatically when the connection is back.",
    ),
    (
        state(status=AccountStatus.FLAGGED, status_reason="banned"),
        "Blocked by the service. Please check the reason: banned.",
    ),
    (state(status=AccountStatus.UNPAIRED), "Not connected to the service."),
    (
        trouble("unreachable", status=AccountStatus.UNPAIRED),
        f"Not connected to the service: {REFUSED}.",
    ),
    (state(status=AccountStatus.PAIRING), "Waiting for the code to be scanned."),
    # Nothing to do
    (state(running=0), "Ready. Nothing to send."),
    (state(running=0, paused=1), "1 run is paused."),
    (state(running=0, paused=3), "3 runs are paused."),
]


@pytest.mark.parametrize(("account", "said"), CASES, ids=[said for _, said in CASES])
def test_what_is_said(account: AccountNow, said: str) -> None:
    assert tell(account, now=NOW, zone=UTC).text(NOW, UTC) == said


def test_times_are_in_the_reader_s_zone() -> None:
    told = tell(trouble("unreachable"), now=NOW, zone=ZoneInfo("Asia/Kuala_Lumpur"))
    assert "since 18:44" in told.sentence


def test_a_clock_counts_to_its_moment_and_never_below_nothing() -> None:
    told = tell(trouble("unreachable"), now=NOW, zone=UTC)
    assert [told.seconds(ahead(seconds=at)) for at in (0, 5, 8, 60)] == [8, 3, 0, 0]


def test_after_a_name_a_sentence_goes_on_in_lower_case() -> None:
    told = tell(trouble("unreachable"), now=NOW, zone=UTC)
    assert (
        f"Parents phone: {told.words}"
        == f"Parents phone: no answer from the gateway since 10:44 ({REFUSED})."
    )
    assert told.clock_words(named=True) == "Next try in"
    hangs = tell(state(asked_at=ago(seconds=12)), now=NOW, zone=UTC)
    assert (hangs.words, hangs.clock_words(named=True)) == ("", "the gateway has not answered for")


@pytest.mark.parametrize("reason", WaitReason)
def test_every_reason_to_wait_has_words(reason: WaitReason) -> None:
    assert reason in WAITS
    assert WAITS[reason].clock.endswith(" in")


@pytest.mark.parametrize("kind", Account.Trouble.values)
def test_every_kind_of_trouble_has_words(kind: str) -> None:
    assert "{since}" in TROUBLES[kind]
    told = tell(trouble(kind), now=NOW, zone=UTC)
    assert told.mood is Mood.TROUBLE
    assert REFUSED in told.sentence


@pytest.mark.parametrize("status", AccountStatus)
def test_every_status_has_words(status: AccountStatus) -> None:
    assert STOPPED[status]


moments = st.none() | st.timedeltas(-timedelta(days=2), timedelta(days=2)).map(lambda away: NOW + away)
anything = st.builds(
    AccountNow,
    status=st.sampled_from(AccountStatus),
    status_reason=st.text(max_size=20),
    archived=st.booleans(),
    running=st.integers(0, 3),
    paused=st.integers(0, 3),
    pace=st.floats(0, 86_400),
    slow_factor=st.floats(1, 100),
    waiting_for=st.sampled_from(["", "unheard of", *WaitReason]),
    waiting_until=moments,
    waiting_detail=st.text(max_size=20),
    trouble_kind=st.sampled_from(["", *Account.Trouble.values]),
    trouble=st.text(max_size=20),
    trouble_since=moments,
    next_try=moments,
    asked_at=moments,
    wake_at=moments,
    redis_answers=st.booleans(),
)


@given(anything)
def test_something_is_said_of_every_account(account: AccountNow) -> None:
    told: Why = tell(account, now=NOW, zone=UTC)
    said = told.text(NOW, UTC)
    assert said.endswith(".")
    for told_by_others in (account.trouble, account.status_reason, account.waiting_detail):
        said = said.replace(told_by_others, "")
    assert "{" not in said


@given(anything)
def test_nothing_in_trouble_is_called_sending(account: AccountNow) -> None:
    if account.trouble_kind or account.status is not AccountStatus.ACTIVE or account.archived:
        assert tell(account, now=NOW, zone=UTC).mood is not Mood.SENDING


def test_words_for_a_reason_alone() -> None:
    assert account_sentence.reason_of(WaitReason.PER_DAY) == "limit per day reached."
    assert (
        account_sentence.reason_of(WaitReason.SLOWED) == "waiting, because the service asked us to slow down."
    )
