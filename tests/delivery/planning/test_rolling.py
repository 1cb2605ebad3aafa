"""Caps over a moving span of days, in plans and in the simulation."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.pacing import BUCKETS
from delivery.planning.rolling import Rolling, Use

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)
A_WEEK = timedelta(days=7)


@pytest.mark.parametrize(
    ("past", "planned", "day", "room"),
    [
        ({}, {}, 0, 10),
        ({-1: 4}, {}, 0, 6),
        ({-7: 4}, {}, 0, 10),  # a week ago
        ({-6: 4}, {}, 1, 10),
        ({-6: 4}, {}, 0, 6),
        ({}, {3: 4}, 0, 6),  # planned for later in the same week
        ({}, {7: 4}, 0, 10),
        ({-6: 5}, {6: 5}, 0, 5),  # in two weeks, each with room for five more
        ({-1: 40}, {}, 0, 0),
    ],
)
def test_the_room_of_a_day(past: dict[int, int], planned: dict[int, int], day: int, room: int) -> None:
    assert Rolling(cap=10, length=A_WEEK, past=past).room(day, planned) == room


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.integers(-6, 0), st.integers(0, 5)),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=40),
)
def test_no_week_of_a_plan_has_too_much(past: dict[int, int], wishes: list[tuple[int, int]]) -> None:
    rolling, planned = Rolling(cap=30, length=A_WEEK, past=past), Counter[int]()
    for day, count in wishes:
        planned[day] += min(count, rolling.room(day, planned))
    total = Counter(past) + planned
    assert all(
        sum(total[each] for each in range(end - 6, end + 1)) <= max(30, sum(past.values()))
        for end in range(-6, 50)
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 60), st.floats(0, 9), st.integers(1, 40)), max_size=30))
def test_a_simulation_sends_no_more_than_the_cap_in_any_span(
    steps: list[tuple[float, float, int]],
) -> None:
    use, now, sent = Use(Rolling(cap=50, length=A_WEEK)), NOON, []
    for wait, lasts, wanted in steps:
        now += timedelta(hours=wait)
        if (count := min(wanted, use.room(now))) == 0:
            opens = use.opens_at(now, 1)
            assert opens > now
            now, count = opens, min(wanted, use.room(opens))
            assert count
        last = now + timedelta(hours=lasts)
        use.add(now, last, count)
        sent += [now + (last - now) * number / count for number in range(1, count + 1)]
        now = last
    length = A_WEEK - A_WEEK / BUCKETS
    assert all(sum(end - length < at <= end for at in sent) <= 50 for end in sent)
