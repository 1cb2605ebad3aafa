import math
import random
from statistics import mean, stdev

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from delivery.pacing import (
    SPREAD_JITTER,
    BadLimitError,
    Limits,
    Pace,
    adaptive_delay,
    batch_position,
    breaker_trips,
    error_rate,
    fixed_delay,
    gaps_ms,
    pace_of,
    recovered,
    shortest_gap_ms,
    slower,
    stretch_for,
    strictest,
)

modestly = settings(max_examples=200, deadline=None)
caps = st.none() | st.integers(1, 100_000)
counts = st.integers(0, 5_000)
seconds = st.floats(0, 3600)


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    gap_min, gap_max = sorted((draw(seconds), draw(seconds)))
    return Limits(
        per_minute=draw(caps),
        per_hour=draw(caps),
        per_day=draw(caps),
        gap_min=gap_min,
        gap_max=gap_max,
        batch_size=draw(st.integers(0, 200)),
        batch_pause=draw(seconds),
    )


def none_looser(strict: Limits, loose: Limits) -> bool:
    """Return whether `strict` allows nothing that `loose` forbids, value by value."""

    def cap(of: int | None) -> float:
        return of or math.inf

    return (
        cap(strict.per_minute) <= cap(loose.per_minute)
        and cap(strict.per_hour) <= cap(loose.per_hour)
        and cap(strict.per_day) <= cap(loose.per_day)
        and strict.gap_min >= loose.gap_min
        and strict.gap_max >= loose.gap_max
        and cap(strict.batch_size) <= cap(loose.batch_size)
        and strict.batch_pause >= loose.batch_pause
    )


@modestly
@given(limits(), limits(), limits())
def test_the_strictest_of_limits_is_looser_than_none_of_them(a: Limits, b: Limits, c: Limits) -> None:
    together = strictest(a, b, c)
    assert all(none_looser(together, each) for each in (a, b, c))
    assert all(
        value in {getattr(each, name) for each in (a, b, c)}
        for name, value in ((name, getattr(together, name)) for name in Limits.__slots__)
    )


@modestly
@given(limits(), limits(), limits())
def test_the_strictest_does_not_depend_on_order_or_repetition(a: Limits, b: Limits, c: Limits) -> None:
    assert strictest(a) == strictest(a, a) == a
    assert strictest(a, b) == strictest(b, a)
    assert strictest(strictest(a, b), c) == strictest(a, strictest(b, c)) == strictest(a, b, c)


def test_no_limits_at_all_limit_nothing() -> None:
    assert strictest() == Limits()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"per_minute": 0}, "per minute would never send"),
        ({"per_hour": -1}, "per hour would never send"),
        ({"per_day": 0}, "per day would never send"),
        ({"gap_min": -1, "gap_max": 1}, "shortest gap"),
        ({"gap_min": math.nan}, "shortest gap"),
        ({"gap_max": math.inf}, "longest gap"),
        ({"gap_min": 5, "gap_max": 3}, "Swap them"),
        ({"batch_size": -1}, "0 for no batches"),
        ({"batch_pause": -1}, "batch pause"),
        ({"batch_pause": 86_401}, "batch pause"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_with_what_to_do(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(BadLimitError, match=sentence):
        Limits(**wrong)  # type: ignore[arg-type]  # one value of either type at a time


def test_the_limiter_is_told_whole_numbers_with_zero_for_none() -> None:
    campaign = Limits(per_minute=20, gap_min=3, gap_max=3, batch_size=75, batch_pause=30.0004)
    assert pace_of(campaign) == Pace(
        per_minute=20, per_hour=0, per_day=0, batch_size=75, batch_pause_ms=30_001
    )


@pytest.mark.parametrize("half", [Limits(batch_size=75), Limits(batch_pause=30)])
def test_a_batch_without_its_size_or_its_pause_is_none(half: Limits) -> None:
    assert (pace_of(half).batch_size, pace_of(half).batch_pause_ms) == (0, 0)


def rate_kept(*, limit: int, window_ms: int, seed: int, messages: int = 1000) -> float:
    """The share of the allowed rate that remains behind an exact sliding log."""
    even = Limits(per_minute=limit * 60_000 // window_ms)
    gaps = gaps_ms(even, cost=1, count=messages - 1, stretch=1, rng=random.Random(seed))
    at = [0]
    for i, gap in enumerate(gaps, start=1):
        earliest = at[i - limit] + window_ms if i >= limit else 0
        at.append(max(at[-1] + gap, earliest))
    return len(gaps) * (window_ms / limit) / at[-1]


@pytest.mark.parametrize(("limit", "window_ms"), [(40, 60_000), (20, 1_000)])
def test_jitter_leaves_at_least_988_thousandths_of_the_allowed_rate(limit: int, window_ms: int) -> None:
    kept = [rate_kept(limit=limit, window_ms=window_ms, seed=seed) for seed in range(100)]
    assert mean(kept) >= 0.988


def test_messages_are_visibly_jittered_around_an_even_share() -> None:
    gaps = gaps_ms(Limits(per_minute=40), cost=1, count=5_000, stretch=1, rng=random.Random(1))
    assert mean(gaps) == pytest.approx(1500, rel=0.005)
    assert stdev(gaps) > 90
    assert 1500 * (1 - SPREAD_JITTER) - 1 <= min(gaps) < 1340
    assert 1660 < max(gaps) <= 1500 * (1 + SPREAD_JITTER) + 1


@modestly
@given(limits(), st.integers(1, 10), st.floats(1, 8), st.integers())
def test_gaps_are_never_shorter_than_what_was_asked_for(
    limit: Limits, cost: int, stretch: float, seed: int
) -> None:
    gaps = gaps_ms(limit, cost=cost, count=20, stretch=stretch, rng=random.Random(seed))
    spread = cost * 60_000 / limit.per_minute if limit.per_minute else 0
    assert len(gaps) == 20
    assert min(gaps) >= math.floor(limit.gap_min * 1000 * stretch)
    assert min(gaps) >= math.floor(spread * (1 - SPREAD_JITTER) * stretch)
    assert min(gaps) >= math.floor(shortest_gap_ms(limit, cost) * stretch)


@modestly
@given(limits(), st.integers(1, 10), st.integers())
def test_gaps_are_never_longer_than_the_longest_gap_or_the_jittered_spread(
    limit: Limits, cost: int, seed: int
) -> None:
    assume(limit.gap_max > 0)
    spread = cost * 60_000 / limit.per_minute if limit.per_minute else 0
    gaps = gaps_ms(limit, cost=cost, count=20, stretch=1, rng=random.Random(seed))
    assert max(gaps) <= math.ceil(max(limit.gap_max * 1000, spread * (1 + SPREAD_JITTER)))


def test_the_same_seed_draws_the_same_gaps() -> None:
    careful = Limits(per_minute=2, gap_min=30, gap_max=60)
    once, again = (gaps_ms(careful, cost=1, count=50, stretch=1, rng=random.Random(7)) for _ in range(2))
    assert once == again
    assert len(set(once)) > 40


@pytest.mark.parametrize(
    ("limit", "cost", "stretch", "about_ms"),
    [
        # The share of the minute cap, for each of the parts of a unit.
        (Limits(per_minute=40), 1, 1.0, 1_500),
        (Limits(per_minute=40), 3, 1.0, 4_500),
        # Slowed down.
        (Limits(per_minute=40), 1, 2.25, 3_375),
        # No gap is set, so the hour cap is spread too: the stricter of the two counts.
        (Limits(per_hour=60), 1, 1.0, 60_000),
        (Limits(per_minute=40, per_hour=60), 1, 1.0, 60_000),
        (Limits(per_minute=1, per_hour=3600), 1, 1.0, 60_000),
        # A gap is set, so it is the pace, and the hour cap only a line: slow sender.
        (Limits(per_hour=10, gap_min=180, gap_max=300), 1, 1.0, 240_000),
        # The gap is between units, however many parts they have.
        (Limits(gap_min=180, gap_max=300), 3, 1.0, 240_000),
        # A short gap does not make up for the minute cap.
        (Limits(per_minute=40, gap_min=0.1, gap_max=0.2), 1, 1.0, 1_500),
    ],
)
def test_how_long_the_gaps_are(limit: Limits, cost: int, stretch: float, about_ms: int) -> None:
    gaps = gaps_ms(limit, cost=cost, count=2_000, stretch=stretch, rng=random.Random(3))
    assert mean(gaps) == pytest.approx(about_ms, rel=0.01)


def test_a_fixed_delay_is_kept_to_the_millisecond() -> None:
    campaign = Limits(per_minute=20, gap_min=3, gap_max=3)
    assert set(gaps_ms(campaign, cost=1, count=50, stretch=1, rng=random.Random(3))) == {3_000}
    assert set(gaps_ms(campaign, cost=1, count=50, stretch=1.5, rng=random.Random(3))) == {4_500}


def test_without_any_limit_there_is_no_gap() -> None:
    assert gaps_ms(Limits(), cost=1, count=3, stretch=4, rng=random.Random(0)) == [0, 0, 0]


@given(st.floats(allow_nan=True))
@example(2.0)
@example(10.0)
@example(1.999)
@example(10.001)
@modestly
def test_a_fixed_delay_is_accepted_exactly_from_two_to_ten_seconds(delay: float) -> None:
    if 2 <= delay <= 10:
        assert fixed_delay(delay) == delay
    else:
        with pytest.raises(BadLimitError, match="Choose 2 to 10 seconds"):
            fixed_delay(delay)


@modestly
@given(counts, counts)
def test_the_error_rate_is_a_share_of_all_attempts(sent: int, failed: int) -> None:
    rate = error_rate(sent, failed)
    assert 0 <= rate <= 1
    assert rate * (sent + failed) == pytest.approx(failed)


@modestly
@given(st.floats(0.1, 60), st.floats(0, 1))
@example(3.0, 0.05)
@example(3.0, 0.050001)
@example(10.0, 1.0)
@example(8.0, 1.0)
def test_above_five_percent_the_delay_is_half_as_long_again_up_to_the_maximum(
    base: float, rate: float
) -> None:
    delay = adaptive_delay(base, rate)
    if rate <= 0.05 or base >= 10:
        assert delay == base
    elif base * 1.5 <= 10:
        assert delay == base * 1.5
    else:
        assert delay == 10


@modestly
@given(st.floats(0.1, 60), st.floats(0, 1))
def test_a_stretch_is_the_adaptive_delay_as_a_factor(base: float, rate: float) -> None:
    factor = stretch_for(rate, base=base)
    assert factor >= 1
    assert factor * base == pytest.approx(adaptive_delay(base, rate))


def test_no_delay_at_all_has_no_maximum_to_keep() -> None:
    assert stretch_for(0.06, base=0) == 1.5
    assert stretch_for(0.05, base=0) == 1.0


@pytest.mark.parametrize(
    ("sent", "failed", "trips"),
    [
        (0, 0, False),  # nothing was tried
        (0, 9, False),  # all failed, but too few to tell
        (7, 3, True),  # the tenth attempt is enough
        (0, 10, True),
        (8, 2, False),  # exactly 20 % is not above it
        (80, 20, False),
        (79, 21, True),
        (4000, 1000, False),
        (3999, 1001, True),
    ],
)
def test_the_breaker_trips_above_a_fifth_from_ten_attempts_on(sent: int, failed: int, trips: bool) -> None:
    assert breaker_trips(sent, failed) is trips


@modestly
@given(counts, counts)
def test_the_breaker_agrees_with_whole_number_arithmetic(sent: int, failed: int) -> None:
    assert breaker_trips(sent, failed) == (sent + failed >= 10 and 5 * failed > sent + failed)


def test_thresholds_are_settings() -> None:
    assert breaker_trips(5, 1, threshold=0.1, minimum=5)
    assert adaptive_delay(2, 0.3, threshold=0.25, factor=2, maximum=3) == 3
    assert stretch_for(0.3, base=2, threshold=0.25, factor=2, maximum=3) == 1.5
    assert fixed_delay(1, shortest=1, longest=2) == 1


def test_each_rate_limit_answer_slows_by_half_again_up_to_the_longest_gap() -> None:
    factors = [1.0]
    for _ in range(7):
        factors.append(slower(factors[-1], gap=2.0, longest=16.0))
    assert factors == [1.0, 1.5, 2.25, 3.375, 5.0625, 7.59375, 8.0, 8.0]


def test_a_lower_longest_gap_does_not_speed_up_an_account_that_was_slowed_before() -> None:
    assert slower(8.0, gap=1.0, longest=4.0) == 8.0


@pytest.mark.parametrize(
    ("factor", "clean_sends", "expected"),
    [
        (2.25, 0, 2.25),
        (2.25, 19, 2.25),  # not yet
        (2.25, 20, 1.5),  # one step
        (2.25, 39, 1.5),
        (2.25, 40, 1.0),  # and the other
        (2.25, 1_000_000_000, 1.0),  # never faster than the limits
        (1.0, 500, 1.0),
        (8.0, 100, 8 / 1.5**5),  # the ceiling takes its steps back as well
        (8.0, 120, 1.0),
    ],
)
def test_an_account_recovers_one_step_after_every_twenty_clean_sends(
    factor: float, clean_sends: int, expected: float
) -> None:
    assert recovered(factor, clean_sends) == pytest.approx(expected)


@modestly
@given(st.floats(1, 8), st.integers(0, 500))
def test_recovering_never_slows_and_never_passes_one(factor: float, clean_sends: int) -> None:
    assert 1 <= recovered(factor, clean_sends + 1) <= recovered(factor, clean_sends) <= factor
    assert recovered(slower(factor, gap=1.0), 20) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("sent_at", "position"),
    [
        ([], 0),
        ([0], 1),
        ([0, 3, 6], 3),
        # Full: the pause is due.
        ([0, 3, 6, 9], 4),
        # After the pause the count starts again.
        ([0, 3, 6, 9, 39], 1),
        ([0, 3, 6, 9, 39, 42], 2),
        # A shorter silence is not a pause.
        ([0, 3, 32], 3),
        # A silence of a whole pause is one, whatever caused it.
        ([0, 3, 33], 1),
        # More in a row than a batch has, as before the limit was set: full.
        ([0, 3, 6, 9, 12, 15], 4),
    ],
)
def test_the_place_in_the_batch_is_read_from_the_times(sent_at: list[int], position: int) -> None:
    assert batch_position(sent_at, batch_size=4, batch_pause_ms=30) == position


@modestly
@given(st.integers(0, 400), st.integers(1, 80), st.integers(1, 29))
def test_a_count_kept_along_the_way_is_found_again_in_the_times(
    messages: int, size: int, gap_ms: int
) -> None:
    at, position, sent_at = 0, 0, []
    for _ in range(messages):
        full = position == size
        at += 30 if full else gap_ms
        position = 1 if full else position + 1
        sent_at.append(at)
    assert batch_position(sent_at, batch_size=size, batch_pause_ms=30) == position


@pytest.mark.parametrize(("size", "pause"), [(0, 30), (75, 0)])
def test_without_batches_there_is_no_place_in_one(size: int, pause: int) -> None:
    assert batch_position([1, 2, 3], batch_size=size, batch_pause_ms=pause) == 0
