"""An account learns from rate-limit answers how much a service allows: simulated services, and the arithmetic."""

import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.pacing import SPREAD_JITTER, allowed_gap, recovered, slower

modestly = settings(max_examples=60, deadline=None)
Service = Callable[
    [float], float
]  # the moment of a request to the wait that it asks for; 0 takes the message
EVERY = 20


def one_every(seconds: float) -> Service:
    """A service that takes a message so many seconds after the last one."""
    last = [-seconds]

    def take(now: float) -> float:
        if now - last[0] < seconds:
            return seconds - (now - last[0])
        last[0] = now
        return 0.0

    return take


def so_many_per(limit: int, seconds: float) -> Service:
    """A service that takes so many messages in any so many seconds."""
    taken: deque[float] = deque()

    def take(now: float) -> float:
        while taken and taken[0] <= now - seconds:
            taken.popleft()
        if len(taken) >= limit:
            return taken[0] + seconds - now
        taken.append(now)
        return 0.0

    return take


def bucket(size: int, seconds: float) -> Service:
    """A service that saves up to `size` messages, and gets room for one more every so many seconds."""
    state = {"room": float(size), "at": 0.0}

    def take(now: float) -> float:
        state["room"] = min(size, state["room"] + (now - state["at"]) / seconds)
        state["at"] = now
        if state["room"] < 1:
            return (1 - state["room"]) * seconds
        state["room"] -= 1
        return 0.0

    return take


def sent_to(service: Service, *, gap: float, messages: int, seed: int) -> tuple[list[float], list[int]]:
    """Send as an account does; when each message was taken, and after how many taken ones each refusal came."""
    rng, now, factor, clean = random.Random(seed), 0.0, 1.0, 0
    since: float | None = None
    taken: list[float] = []
    refused: list[int] = []
    while len(taken) < messages:
        wait = service(now)
        if wait:
            refused.append(len(taken))
            times = [at for at in taken if since is None or at >= since]
            began = since if since is not None else (times[0] if times else now)
            seen = allowed_gap(since=began, until=now + wait, sent=len(times))
            factor, clean = slower(factor, gap=gap, seen=seen), 0
            now += wait + 1e-6
            since = now
            continue
        taken.append(now)
        clean += 1
        if clean >= EVERY:
            factor, clean = recovered(factor, clean, every=EVERY), 0
        now += gap * factor * rng.uniform(1 - SPREAD_JITTER, 1 + SPREAD_JITTER)
    return taken, refused


@modestly
@given(gap=st.floats(0.05, 5), times=st.floats(1.5, 60), seed=st.integers(0, 1000))
def test_a_service_that_allows_one_now_and_then_is_soon_asked_for_no_more(
    gap: float, times: float, seed: int
) -> None:
    allowed = gap * times
    taken, refused = sent_to(one_every(allowed), gap=gap, messages=200, seed=seed)
    settled = [number for number in refused if number >= 20]
    assert len(settled) <= 180 // EVERY * 2 + 2, (
        "each step of recovery may be one too far, and not every message"
    )
    assert taken[-1] - taken[20] <= 2 * allowed * 180, "near to what it allows, not far below"


@pytest.mark.parametrize(
    ("service", "allowed"),
    [
        (one_every(30), 30.0),
        (so_many_per(20, 600), 30.0),
        (so_many_per(5, 60), 12.0),
        (bucket(10, 30), 30.0),
    ],
)
def test_whatever_way_it_counts(service: Service, allowed: float) -> None:
    taken, refused = sent_to(service, gap=1.5, messages=200, seed=7)
    assert len([number for number in refused if number >= 40]) <= 22
    assert allowed * 0.8 <= (taken[-1] - taken[40]) / 159 <= allowed * 2


def test_a_service_without_a_limit_is_used_at_full_speed() -> None:
    taken, refused = sent_to(lambda _: 0.0, gap=1.0, messages=100, seed=1)
    assert refused == []
    assert taken[-1] == pytest.approx(99, rel=0.05)


def test_a_limit_that_is_lifted_is_forgotten_step_by_step() -> None:
    strict, calls = one_every(30), [0]

    def lifted_after_a_while(now: float) -> float:
        calls[0] += 1
        return strict(now) if calls[0] < 40 else 0.0

    taken, _ = sent_to(lifted_after_a_while, gap=1.5, messages=400, seed=3)
    assert taken[-1] - taken[-20] == pytest.approx(19 * 1.5, rel=0.2), "as fast as before"


# The arithmetic.


@pytest.mark.parametrize(
    ("since", "until", "sent", "gap"),
    [
        (0, 30, 1, 30),
        (0, 600, 20, 30),
        (100, 130, 0, None),  # nothing was taken in between: nobody knows
        (100, 90, 3, None),
    ],
)
def test_what_a_service_was_seen_to_allow(since: float, until: float, sent: int, gap: float | None) -> None:
    assert allowed_gap(since=since, until=until, sent=sent) == gap


@pytest.mark.parametrize(
    ("factor", "seen", "expected"),
    [
        (1.0, None, 1.5),  # blind: one step
        (2.0, None, 3.0),
        (1.0, 1.1, 1.5),  # what was seen is less than a step
        (1.0, 30.0, 34.5),  # what was seen, and the jitter above it
        (1.0, 1e9, 3600.0),  # a gap of an hour is the longest
        (3000.0, None, 3600.0),
        (4000.0, None, 4000.0),  # and one that is longer stays
    ],
)
def test_a_step_is_as_long_as_it_has_to_be(factor: float, seen: float | None, expected: float) -> None:
    assert slower(factor, gap=1.0, seen=seen) == pytest.approx(expected)


def test_an_account_without_any_gap_still_takes_its_steps() -> None:
    assert slower(1.0, gap=0.0, seen=30.0) == 1.5
