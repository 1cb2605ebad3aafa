import random
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.pacing import Limits, gaps_ms
from delivery.planning.spacing import Layer, Spacing, mean_gap, spacing_of

modestly = settings(max_examples=100, deadline=None)

spacings = st.builds(
    Spacing,
    gap=st.floats(0.001, 600),
    layers=st.lists(
        st.builds(Layer, units=st.integers(1, 100), seconds=st.floats(0.1, 4000)), max_size=3
    ).map(lambda layers: tuple(sorted(layers, key=lambda layer: layer.seconds))),
)
few = st.integers(0, 500)


def one_by_one(spacing: Spacing, count: int) -> list[float]:
    """Return when targets begin, computed step by step from the limits."""
    times: list[float] = []
    for _ in range(count):
        at = times[-1] + spacing.gap if times else 0.0
        for layer in spacing.layers:
            if len(times) >= layer.units:
                at = max(at, times[-layer.units] + layer.seconds)
        times.append(at)
    return times


@modestly
@given(spacings, few)
def test_no_gap_is_shorter_and_over_its_rounds_no_layer_is_crossed(spacing: Spacing, count: int) -> None:
    times = [spacing.at(number) for number in range(count)]
    assert all(after - before >= spacing.gap - 1e-6 for before, after in pairwise(times))
    for layer in spacing.layers[-1:]:
        for rounds, at in enumerate(times[:: layer.units]):
            assert at >= rounds * layer.seconds - 1e-6


@modestly
@given(spacings, few)
def test_it_waits_for_nothing_that_going_step_by_step_would_not_wait_for(
    spacing: Spacing, count: int
) -> None:
    for number, at in enumerate(one_by_one(spacing, count)):
        assert spacing.at(number) <= at + 1e-6


@pytest.mark.parametrize(
    "limits",
    [
        Limits(per_minute=40),
        Limits(per_minute=5, per_hour=100),
        Limits(per_hour=10, per_minute=40, gap_min=240, gap_max=240),
        Limits(per_minute=20, gap_min=3, gap_max=3),
    ],
)
@pytest.mark.parametrize("parts", [1, 3])
def test_it_is_what_going_step_by_step_finds(limits: Limits, parts: int) -> None:
    spacing = spacing_of(limits, parts=parts)
    assert spacing.at(499) == pytest.approx(one_by_one(spacing, 500)[-1], rel=0.01)


@modestly
@given(spacings, few)
def test_counting_and_timing_are_inverse(spacing: Spacing, count: int) -> None:
    assert spacing.within(spacing.at(count) + 1e-3) is not None
    assert (spacing.within(spacing.at(count) + 1e-3) or 0) >= count + 1
    assert (spacing.within(spacing.at(count) - 1e-3) or 0) <= count


def test_without_any_limit_everything_leaves_at_once() -> None:
    nothing = spacing_of(Limits(), parts=1)
    assert (nothing.at(10_000), nothing.within(1.0), nothing.within(0.0)) == (0.0, None, 0)


def test_an_endless_minute_without_a_gap_is_filled_at_once() -> None:
    assert Spacing(gap=0, layers=(Layer(units=10, seconds=60),)).within(61) == 20


@modestly
@given(
    st.integers(1, 100),
    st.tuples(st.floats(0, 60), st.floats(0, 60)).map(sorted),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_the_mean_gap_is_that_of_the_gaps_that_are_drawn(
    per_minute: int, gap: list[float], parts: int, seed: int
) -> None:
    limits = Limits(per_minute=per_minute, gap_min=gap[0], gap_max=gap[1])
    drawn = gaps_ms(limits, cost=parts, count=4000, stretch=1, rng=random.Random(seed))
    assert mean_gap(limits, parts) == pytest.approx(mean(drawn) / 1000, rel=0.05, abs=0.01)


def test_a_scaled_minute_scales_the_gaps_and_the_caps() -> None:
    real = spacing_of(Limits(per_minute=40, per_hour=600), parts=1)
    scaled = spacing_of(Limits(per_minute=40, per_hour=600), parts=1, minute=2)
    assert scaled.at(700) == pytest.approx(real.at(700) / 30)


def test_what_messages_were_seen_to_take_is_the_shortest_gap() -> None:
    assert spacing_of(Limits(per_minute=40), parts=2, slowest=4).gap == 8


def test_a_batch_ends_with_its_pause_in_the_place_of_a_gap() -> None:
    campaign = spacing_of(Limits(per_minute=20, gap_min=3, gap_max=3, batch_size=75, batch_pause=30), parts=1)
    assert campaign.at(75) - campaign.at(74) == pytest.approx(30)
    assert campaign.at(74) - campaign.at(73) == pytest.approx(3.03)
