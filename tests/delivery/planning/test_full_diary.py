from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.planning.diary import Load, Overflow, over, overflows

modestly = settings(max_examples=150, deadline=None)
loads = st.lists(
    st.builds(
        Load,
        run_id=st.integers(1, 5),
        day=st.integers(0, 4),
        targets=st.integers(1, 50),
        parts=st.integers(1, 3),
    ),
    max_size=12,
    unique_by=lambda load: (load.run_id, load.day),
)
rooms = st.lists(st.none() | st.integers(0, 60), min_size=5, max_size=5)


@modestly
@given(loads, rooms)
def test_once_what_overflows_is_gone_no_day_has_too_much(planned: list[Load], room: list[int | None]) -> None:
    gone = {
        (each.load.run_id, each.load.day): each.targets
        for each in overflows(planned, lambda day, _: room[day])
    }
    left: Counter[int] = Counter()
    for load in planned:
        left[load.day] += (load.targets - gone.get((load.run_id, load.day), 0)) * load.parts
    assert all(allowed is None or left[day] <= allowed for day, allowed in enumerate(room))


@modestly
@given(loads, rooms)
def test_days_that_are_not_over_keep_everything(planned: list[Load], room: list[int | None]) -> None:
    too_much = over(planned, lambda day, _: room[day])
    assert {each.load.day for each in overflows(planned, lambda day, _: room[day])} == set(too_much)


def test_what_comes_first_stays() -> None:
    first = Load(run_id=1, day=0, targets=3, parts=1)
    second = Load(run_id=2, day=0, targets=3, parts=1)
    assert overflows([first, second], lambda *_: 4) == [Overflow(load=second, stays=1)]


def test_a_target_is_not_torn_apart() -> None:
    (found,) = overflows([Load(run_id=1, day=0, targets=3, parts=2)], lambda *_: 5)
    assert (found.stays, found.targets) == (2, 1)
