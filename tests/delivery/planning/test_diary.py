"""Plans: inside windows, under caps, spaced, and nobody lost."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.planning.diary import LAST_MINUTE, Diary, NoRoomError, Slot
from delivery.window import Window, closes_at, is_open

modestly = settings(max_examples=80, deadline=None)

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=BERLIN)
ALL_DAY = Window(start_hour=0, end_hour=24, zone="Europe/Berlin")
BUSINESS = Window(start_hour=9, end_hour=18, days=frozenset(range(5)), zone="Europe/Berlin")
ZONES = ("Europe/Berlin", "UTC", "Pacific/Auckland", "America/St_Johns", "Asia/Kathmandu")


def diary(cap: int | None = None, *, zone: str = "Europe/Berlin", now: datetime = WEDNESDAY) -> Diary:
    return Diary(zone=zone, now=now, room=lambda *_: cap)


def drip(
    in_: Diary,
    targets: int,
    *,
    window: Window = BUSINESS,
    parts: int = 1,
    after: datetime = WEDNESDAY,
    seed: int = 7,
) -> list[datetime]:
    return in_.drip(
        window, parts=parts, targets=targets, after=after, spacing=(300, 1200), rng=random.Random(seed)
    )


@st.composite
def windows(draw: st.DrawFn) -> Window:
    start = draw(st.integers(0, 23))
    return Window(
        start_hour=start,
        end_hour=draw(st.integers(start + 1, 24)),
        days=draw(st.frozensets(st.integers(0, 6), min_size=1)),
        zone=draw(st.sampled_from(ZONES)),
    )


# The clock changes in Berlin on 29 March and in Auckland on 5 April.
moments = st.integers(0, 14 * 24 * 60).map(
    lambda late: datetime(2026, 3, 25, tzinfo=UTC) + timedelta(minutes=late)
)


@modestly
@given(
    window=windows(),
    zone=st.sampled_from(ZONES),
    now=moments,
    targets=st.integers(1, 60),
    parts=st.integers(1, 3),
    caps=st.lists(st.integers(3, 20), min_size=1, max_size=4),
    spacing=st.tuples(st.integers(0, 3600), st.integers(0, 3600)).map(sorted),
    seed=st.integers(0, 99),
)
def test_a_drip_stays_in_its_window_and_under_its_caps_with_its_spacing_and_loses_nobody(
    window: Window,
    zone: str,
    now: datetime,
    targets: int,
    parts: int,
    caps: list[int],
    spacing: list[int],
    seed: int,
) -> None:
    planned = Diary(zone=zone, now=now, room=lambda day, _: caps[min(day, len(caps) - 1)])
    times = planned.drip(
        window,
        parts=parts,
        targets=targets,
        after=now,
        spacing=(spacing[0], spacing[1]),
        rng=random.Random(seed),
    )
    assert len(times) == targets
    assert all(at >= now and is_open(window, at) for at in times)
    assert all(at < closes_at(window, at) - LAST_MINUTE for at in times)
    apart = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert all(gap >= spacing[0] - 1e-6 for gap in apart)
    same_day = [
        gap
        for gap, (before, after) in zip(apart, pairwise(times), strict=True)
        if before.astimezone(ZoneInfo(zone)).date() == after.astimezone(ZoneInfo(zone)).date()
        and closes_at(window, before) == closes_at(window, after)
    ]
    assert all(gap <= spacing[1] + 1e-6 for gap in same_day)
    used = Counter(planned.day_of(at) for at in times)
    assert all(count * parts <= caps[min(day, len(caps) - 1)] for day, count in used.items())


@modestly
@given(
    window=windows(),
    zone=st.sampled_from(ZONES),
    now=moments,
    targets=st.integers(1, 500),
    parts=st.integers(1, 3),
    cap=st.none() | st.integers(3, 50),
)
def test_openings_take_everybody_in_open_windows_and_under_the_cap(
    window: Window, zone: str, now: datetime, targets: int, parts: int, cap: int | None
) -> None:
    planned = diary(cap, zone=zone, now=now)
    slots = planned.openings(window, parts=parts, targets=targets, after=now)
    assert sum(slot.targets for slot in slots) == targets
    assert all(is_open(window, slot.at) and slot.at >= now for slot in slots)
    used: Counter[int] = Counter()
    for slot in slots:
        used[planned.day_of(slot.at)] += slot.targets * parts
    assert cap is None or all(count <= cap for count in used.values())


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert drip(diary(20), 50) == drip(diary(20), 50) != drip(diary(20), 50, seed=8)


def test_a_drip_begins_at_once_where_the_window_is_open() -> None:
    assert drip(diary(), 1) == [WEDNESDAY]


def test_the_days_that_follow_do_not_begin_on_the_hour() -> None:
    times = drip(diary(1), 5)
    openings = [at.astimezone(BERLIN).replace(hour=9, minute=0, second=0, microsecond=0) for at in times[1:]]
    late = [at - opening for at, opening in zip(times[1:], openings, strict=True)]
    assert len(set(late)) == 4
    assert all(timedelta() < each <= timedelta(minutes=5) for each in late)


def test_a_weekend_is_left_out() -> None:
    friday = datetime(2026, 3, 13, 17, 50, tzinfo=BERLIN)
    monday = drip(diary(now=friday), 3, after=friday)[-1]
    assert monday.astimezone(BERLIN).weekday() == 0


def test_what_is_entered_takes_the_room_of_its_day() -> None:
    days = diary(5)
    days.enter(0, 3)
    assert (days.room(0), days.room(1)) == (2, 5)
    assert [days.day_of(at) for at in drip(days, 4, window=ALL_DAY)] == [0, 0, 1, 1]


def test_two_plans_of_one_account_share_its_days() -> None:
    days = diary(5)
    used = Counter(days.day_of(at) for _ in range(2) for at in drip(days, 6, window=ALL_DAY))
    assert used == {0: 5, 1: 5, 2: 2}


def test_targets_that_may_leave_together_get_the_opening_of_a_day() -> None:
    slots = diary(40).openings(BUSINESS, parts=1, targets=100, after=WEDNESDAY)
    thursday = datetime(2026, 3, 12, 9, tzinfo=BERLIN)
    assert slots == [
        Slot(at=WEDNESDAY, targets=40),
        Slot(at=thursday, targets=40),
        Slot(at=thursday + timedelta(days=1), targets=20),
    ]


def test_a_plan_that_fits_no_day_is_refused_with_what_to_do() -> None:
    with pytest.raises(NoRoomError, match="Raise the daily cap"):
        drip(diary(2), 1, parts=3, window=ALL_DAY)
