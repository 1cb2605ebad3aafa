"""Bars and plots add up, and never draw outside their frame."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from activity.components.plots import BAR_WIDTH, columns, segments, spark

COUNTS = st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 10**6), max_size=6)


@settings(deadline=None)
@given(COUNTS)
def test_segments_lie_side_by_side_and_fill_the_bar(counts: dict[str, int]) -> None:
    total = sum(counts.values())
    drawn = segments(counts, total)
    assert [(part.name, part.count) for part in drawn] == list(counts.items())
    for left, right in pairwise(drawn):
        assert abs(left.x + left.width - right.x) < 0.05
    if total:
        assert abs(drawn[-1].x + drawn[-1].width - BAR_WIDTH) < 0.05


def test_a_bar_of_nothing_is_empty() -> None:
    assert [part.width for part in segments({"sent": 0}, 0)] == [0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 10**6)), max_size=48))
def test_columns_stay_inside_the_plot_and_no_value_vanishes(values: list[tuple[str, int]]) -> None:
    for column in columns(values, width=480, height=100):
        assert 0 <= column.y <= 100
        assert column.slot_x + column.slot_width <= 480.5
        assert (column.height >= 2) == (column.value > 0)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_a_spark_starts_and_ends_at_the_edges(values: list[float]) -> None:
    drawn = spark(values, width=96, height=24)
    assert drawn is not None
    assert drawn.line.startswith("0.0,")
    assert abs(drawn.end_x - 96) < 0.01
    assert 0 <= drawn.end_y <= 24


def test_one_value_makes_no_line() -> None:
    assert spark([1], width=96, height=24) is None
