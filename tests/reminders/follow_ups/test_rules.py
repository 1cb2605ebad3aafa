"""The rules of follow-ups, held by any story of attempts, replies and time."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reminders.follow_ups.rules import (
    Contact,
    Patience,
    QueueLimits,
    Reason,
    Refusal,
    after_attempt,
    after_reply,
    delay,
    refreshed,
    refused,
    why_not,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TWO_DAYS = timedelta(hours=48)
PATIENCE = Patience(most=3, cooldown=TWO_DAYS)
LIMITS = QueueLimits(most=5000, threshold=200, growth=(0.2, 0.4))

moves = st.lists(st.one_of(st.just("ask"), st.just("reply"), st.integers(1, 60)), max_size=60)


@given(moves)
def test_no_story_has_a_fourth_attempt_without_a_reply_or_one_in_a_cooldown(story: list[str | int]) -> None:
    contact, now, asked, cool_until = Contact(), NOON, 0, NOON
    for move in story:
        if isinstance(move, int):
            now += timedelta(hours=move)
        elif move == "reply":
            contact, asked, cool_until = after_reply(contact), 0, now
        elif why_not(contact, now=now, most=3) is None:
            assert now >= cool_until
            if refreshed(contact, now) != contact:
                asked = 0
            contact, asked = after_attempt(contact, now=now, patience=PATIENCE), asked + 1
            assert asked == contact.attempts <= 3
            if asked == 3:
                cool_until = now + TWO_DAYS
                assert contact.not_interested


def test_the_third_brings_the_cooldown_and_it_clears_by_itself() -> None:
    contact = Contact()
    for _ in range(3):
        assert why_not(contact, now=NOON, most=3) is None
        contact = after_attempt(contact, now=NOON, patience=PATIENCE)
    assert contact == Contact(attempts=3, cooldown_until=NOON + TWO_DAYS, not_interested=True)
    almost, over = NOON + TWO_DAYS - timedelta(seconds=1), NOON + TWO_DAYS
    assert why_not(contact, now=almost, most=3) is Reason.COOLING_DOWN
    assert why_not(contact, now=over, most=3) is None
    assert refreshed(contact, over) == Contact()


@pytest.mark.parametrize(
    ("contact", "reason"),
    [
        (Contact(), None),
        (Contact(attempts=2), None),
        (Contact(attempts=3), Reason.AT_MAXIMUM),
        (Contact(not_interested=True), Reason.NOT_INTERESTED),
        (Contact(converted=True, attempts=3), Reason.CONVERTED),
        (Contact(blocked=True, converted=True), Reason.BLOCKED),
        (Contact(opted_out=True, blocked=True), Reason.OPTED_OUT),
        (Contact(archived=True), Reason.UNREACHABLE),
    ],
)
def test_the_strongest_reason_is_told(contact: Contact, reason: Reason | None) -> None:
    assert why_not(contact, now=NOON, most=3) is reason


@pytest.mark.parametrize(
    ("size", "high", "answer"),
    [
        (0, False, None),
        (200, False, None),
        (201, False, Refusal.BACKPRESSURE),
        (201, True, None),
        (4999, True, None),
        (5000, True, Refusal.FULL),
        (5000, False, Refusal.FULL),
    ],
)
def test_what_enters_a_queue_of_a_size(size: int, high: bool, answer: Refusal | None) -> None:
    assert refused(size=size, high=high, limits=LIMITS) is answer


@given(st.integers(0, 10_000), st.lists(st.booleans(), max_size=300))
def test_a_queue_never_passes_its_maximum(start: int, urgencies: list[bool]) -> None:
    size = min(start, LIMITS.most)
    for high in urgencies:
        size += refused(size=size, high=high, limits=LIMITS) is None
        assert size <= LIMITS.most


@given(st.integers(0, 5000), st.integers(0, 2**32))
def test_delays_grow_by_a_fifth_to_two_fifths_above_the_threshold_only(size: int, seed: int) -> None:
    day = timedelta(days=1)
    waits = delay(day, size=size, limits=LIMITS, rng=random.Random(seed))
    if size <= 200:
        assert waits == day
    else:
        assert day * 1.2 <= waits <= day * 1.4
