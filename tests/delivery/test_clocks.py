"""The clock that is called wrong, and by how much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.clocks import Clock, Clocks, amount, expected_of_redis

TOLERANCE = 5_000
MINUTE, HOUR = 60_000, 3_600_000


def clock(ahead_ms: float, *, doubt_ms: float = 0) -> Clock:
    return Clock(earliest_ms=ahead_ms - doubt_ms, latest_ms=ahead_ms)


def sentence(*, redis: float = 0, database: float = 0, worker: float = 0) -> str:
    clocks = Clocks(redis=clock(redis), database=clock(database), worker=clock(worker))
    return clocks.disagreement(TOLERANCE)


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        ({}, ""),
        ({"redis": 5_000}, ""),
        ({"redis": -2_500, "worker": 2_500}, ""),
        ({"redis": 5_001}, "The clock of Redis is 5 seconds ahead of the database."),
        ({"redis": 61 * MINUTE}, "The clock of Redis is 61 minutes ahead of the database."),
        ({"redis": -61 * MINUTE}, "The clock of Redis is 61 minutes behind the database."),
        ({"worker": 3 * HOUR}, "The clock of the worker is 3 hours ahead of the database."),
        ({"worker": -90_000}, "The clock of the worker is 90 seconds behind the database."),
        ({"database": 72 * HOUR}, "The clock of the database is 3 days ahead of Redis and the worker."),
        ({"database": -HOUR / 2}, "The clock of the database is 30 minutes behind Redis and the worker."),
        ({"redis": 3_000, "worker": -3_000}, "The clock of the worker is 6 seconds behind Redis."),
        (
            {"redis": HOUR, "worker": -3 * HOUR},
            (
                "No two clocks agree: Redis is 60 minutes ahead of the database, "
                "and the worker is 3 hours behind the database."
            ),
        ),
    ],
)
def test_the_clock_that_is_off_is_named(ahead: dict[str, float], said: str) -> None:
    assert sentence(**ahead) == said


def test_an_answer_that_took_long_proves_no_disagreement() -> None:
    """An answer that was under way for a minute may have been read at any moment of it."""
    late = clock(MINUTE, doubt_ms=MINUTE)
    assert Clocks(redis=late, database=clock(0), worker=clock(0)).disagreement(TOLERANCE) == ""
    off = clock(2 * MINUTE, doubt_ms=MINUTE)
    assert "Redis is 60 seconds ahead" in Clocks(redis=off, database=clock(0), worker=clock(0)).disagreement(
        TOLERANCE
    )


offsets = st.integers(-20_000, 20_000)


@given(redis=offsets, database=offsets, worker=offsets)
def test_a_sentence_comes_exactly_when_two_clocks_are_further_apart_than_allowed(
    redis: int, database: int, worker: int
) -> None:
    spread = max(redis, database, worker) - min(redis, database, worker)
    assert bool(sentence(redis=redis, database=database, worker=worker)) == (spread > TOLERANCE)


@given(redis=offsets, database=offsets, worker=offsets, at=st.floats(0, 1e6))
def test_what_is_expected_of_redis_lets_through_exactly_what_agrees(
    redis: int, database: int, worker: int, at: float
) -> None:
    expected = expected_of_redis(
        database=clock(database), worker=clock(worker), at=at, tolerance_ms=TOLERANCE
    )
    inside = expected.earliest_ms <= round(at * 1000 + redis) <= expected.latest_ms
    spread = max(redis, database, worker) - min(redis, database, worker)
    if abs(spread - TOLERANCE) > 1:  # a millisecond is lost by rounding
        assert inside == (spread <= TOLERANCE)


@given(first=offsets, second=offsets)
def test_being_ahead_is_the_opposite_of_being_behind(first: int, second: int) -> None:
    assert clock(first).ahead_of(clock(second)) == -clock(second).ahead_of(clock(first)) == first - second


@pytest.mark.parametrize(
    ("moved", "passed_ms", "stepped"),
    [
        (250, 0, False),
        (251, 0, True),
        (-251, 0, True),
        (20, 10_000, False),  # 2,000 ppm: more than any NTP corrects while smearing
        (350, 10_000, False),
        (351, 10_000, True),
        (HOUR, 10_000, True),
        (-HOUR, 10_000, True),
    ],
)
def test_a_clock_that_is_set_is_told_from_one_that_is_corrected_slowly(
    moved: float, passed_ms: float, stepped: bool
) -> None:
    assert clock(moved).stepped_since(clock(0), passed_ms) == stepped


def test_an_answer_that_was_long_under_way_looks_like_no_step() -> None:
    assert not Clock.read(10_000, asked=1.0, answered=6.0).stepped_since(
        Clock.read(5_000, asked=1.0, answered=1.0), 5_000
    )


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "1 second"),
        (1_400, "1 second"),
        (6_000, "6 seconds"),
        (119_000, "119 seconds"),
        (120_000, "2 minutes"),
        (119 * MINUTE, "119 minutes"),
        (2 * HOUR, "2 hours"),
        (47 * HOUR, "47 hours"),
        (50 * HOUR, "2 days"),
        (24_000 * HOUR, "1,000 days"),
    ],
)
def test_an_amount_is_said_in_words(ms: float, words: str) -> None:
    assert amount(ms) == words
