from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.window import (
    BadWindowError,
    CloseMove,
    Missed,
    Open,
    Waits,
    Window,
    closes_at,
    is_open,
    on_close,
    on_fire,
    opens_at,
    sendable_until,
    window_end_at,
    window_start_at,
)

ZONES = sorted(available_timezones() - {"localtime"})
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2037, 12, 31, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
modestly = settings(max_examples=200, deadline=None)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def offset(zone: str, at: datetime) -> timedelta:
    shift = at.astimezone(ZoneInfo(zone)).utcoffset()
    assert shift is not None
    return shift


@cache
def clock_changes(zone: str) -> tuple[datetime, ...]:
    """Every instant at which the zone's offset changes, to the second."""
    found = []
    at, week = FIRST, timedelta(weeks=1)
    while at < LAST:
        if offset(zone, at) != offset(zone, at + week):
            low, high = at, at + week
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low).total_seconds() // 2)
                low, high = (middle, high) if offset(zone, middle) == offset(zone, at) else (low, middle)
            found.append(high)
        at += week
    return tuple(found)


def odd_fall_back_around(zone: str, at: datetime) -> bool:
    """Return whether a clock goes back near `at` by something else than one whole hour on the hour.

    Only then can the hours of a window come in two pieces, of which one is used.
    """
    return any(
        abs(change - at) <= 2 * DAY
        and offset(zone, change) < offset(zone, change - TICK)
        and (
            offset(zone, change - TICK) - offset(zone, change) != timedelta(hours=1)
            or change.astimezone(ZoneInfo(zone)).minute != 0
        )
        for change in clock_changes(zone)
    )


def wall_clock_says_open(window: Window, at: datetime) -> bool:
    """The oracle: what a person with a clock and a calendar of that zone on the wall would say."""
    local = at.astimezone(ZoneInfo(window.zone))
    return local.weekday() in window.days and window.start_hour <= local.hour < window.end_hour


@st.composite
def windows(draw: st.DrawFn) -> Window:
    start = draw(st.integers(0, 23))
    return Window(
        start_hour=start,
        end_hour=draw(st.integers(start + 1, 24)),
        days=draw(st.frozensets(st.integers(0, 6), min_size=1)),
        zone=draw(st.sampled_from(ZONES)),
    )


@st.composite
def windows_with_a_moment(draw: st.DrawFn) -> tuple[Window, datetime]:
    """Half of the moments are around a clock change, to the microsecond."""
    window = draw(windows())
    changes = clock_changes(window.zone)
    near_a_change = bool(changes) and draw(st.booleans())
    if near_a_change:
        nearby = timedelta(
            minutes=draw(st.integers(-36 * 60, 36 * 60)), microseconds=draw(st.integers(-1, 1))
        )
        return window, draw(st.sampled_from(changes)) + nearby
    naive = st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None))
    return window, draw(naive).replace(tzinfo=UTC)


@modestly
@given(windows_with_a_moment())
def test_a_window_is_open_exactly_when_the_wall_clock_says_so(case: tuple[Window, datetime]) -> None:
    window, now = case
    if is_open(window, now):
        assert wall_clock_says_open(window, now)
    elif wall_clock_says_open(window, now):
        assert odd_fall_back_around(window.zone, now)


@modestly
@given(windows_with_a_moment())
def test_the_opening_is_the_first_open_moment_from_now_on(case: tuple[Window, datetime]) -> None:
    window, now = case
    opening = opens_at(window, now)

    assert is_open(window, opening)
    assert (opening == now) == is_open(window, now)
    assert opening >= now
    if opening > now:
        assert not is_open(window, opening - TICK)
    at = now
    while at < opening:
        # No window is shorter than an hour, so half hours cannot step over one.
        assert not wall_clock_says_open(window, at) or odd_fall_back_around(window.zone, at)
        at += timedelta(minutes=30)


@modestly
@given(windows_with_a_moment())
def test_the_window_is_open_up_to_its_close_and_not_a_moment_longer(case: tuple[Window, datetime]) -> None:
    window, now = case
    opening, closing = opens_at(window, now), closes_at(window, now)

    assert now <= opening < closing
    assert is_open(window, opening + (closing - opening) / 2)
    assert is_open(window, closing - TICK)
    if (window.start_hour, window.end_hour) != (0, 24):  # else the next day's window opens that instant
        assert not is_open(window, closing)


@modestly
@given(windows_with_a_moment())
def test_a_fired_run_starts_waits_or_has_missed_its_day(case: tuple[Window, datetime]) -> None:
    window, now = case
    match on_fire(window, now):
        case Open(closes_at=closing):
            assert is_open(window, now)
            assert closing == closes_at(window, now)
        case Waits(opens_at=opening, closes_at=closing):
            assert not is_open(window, now)
            assert (opening, closing) == (opens_at(window, now), closes_at(window, now))
        case Missed(closed_at=closed):
            assert not is_open(window, now)
            assert now.astimezone(ZoneInfo(window.zone)).weekday() in window.days
            assert closed == window_end_at(window.zone, window.end_hour, now) <= now


@modestly
@given(windows_with_a_moment(), st.floats(0, 7200))
def test_what_begins_in_time_arrives_before_the_end(case: tuple[Window, datetime], guard: float) -> None:
    window, now = case
    last = sendable_until(window, now, guard)
    assert last + timedelta(seconds=guard) == closes_at(window, now)


@pytest.mark.parametrize(
    ("zone", "hour", "at", "expected"),
    [
        # An ordinary day.
        ("Asia/Kuala_Lumpur", 18, "2026-05-10T01:00", "2026-05-10T10:00"),
        # After that day's end the result lies in the past.
        ("Asia/Kuala_Lumpur", 18, "2026-05-10T12:00", "2026-05-10T10:00"),
        # The calendar day is that of the zone: here it is the 11th already.
        ("Asia/Kuala_Lumpur", 18, "2026-05-10T17:00", "2026-05-11T10:00"),
        # Hour 24 is the next midnight.
        ("Asia/Kuala_Lumpur", 24, "2026-05-10T01:00", "2026-05-10T16:00"),
        # The short day, asked before the clock changes.
        ("Europe/Berlin", 18, "2026-03-29T00:30", "2026-03-29T16:00"),
        # The long day, asked before the clock changes.
        ("Europe/Berlin", 18, "2026-10-25T00:00", "2026-10-25T17:00"),
        ("Europe/Berlin", 24, "2026-10-25T00:00", "2026-10-25T23:00"),
        # 1:00 comes twice: nothing leaves after the first.
        ("America/New_York", 1, "2026-11-01T12:00", "2026-11-01T05:00"),
        # 2:00 comes once, after 1:00 to 2:00 was lived through twice.
        ("America/New_York", 2, "2026-11-01T12:00", "2026-11-01T07:00"),
        # 2:00 does not exist: the clock jumps over it.
        ("America/New_York", 2, "2026-03-08T12:00", "2026-03-08T07:00"),
        # Midnight itself does not exist.
        ("America/Havana", 24, "2026-03-07T12:00", "2026-03-08T05:00"),
        # Midnight comes twice, both after the day.
        ("America/Havana", 24, "2026-10-31T12:00", "2026-11-01T04:00"),
        # One minute past midnight the clock went back into the day that was over.
        ("America/St_Johns", 24, "2010-11-06T12:00", "2010-11-07T02:30"),
        # Half an hour back.
        ("Australia/Lord_Howe", 2, "2026-04-05T02:00", "2026-04-04T15:30"),
        # The next day was skipped, so its midnight is that of the day after.
        ("Pacific/Apia", 24, "2011-12-29T20:00", "2011-12-30T10:00"),
    ],
)
def test_the_end_of_the_window(zone: str, hour: int, at: str, expected: str) -> None:
    assert window_end_at(zone, hour, utc(at)) == utc(expected)
    assert window_end_at(zone, hour, utc(at).astimezone(ZoneInfo("Asia/Tokyo"))).tzinfo is UTC


@pytest.mark.parametrize(
    ("zone", "hour", "at", "expected"),
    [
        # An ordinary day, also when asked after the start.
        ("Asia/Kuala_Lumpur", 6, "2026-05-10T12:00", "2026-05-09T22:00"),
        # The short and the long day, asked from the other side of the change.
        ("Europe/Berlin", 6, "2026-03-28T23:30", "2026-03-29T04:00"),
        ("Europe/Berlin", 0, "2026-10-25T20:00", "2026-10-24T22:00"),
        # 2:00 does not exist: the first instant after the gap, 3:00.
        ("America/New_York", 2, "2026-03-08T12:00", "2026-03-08T07:00"),
        # Midnight does not exist: the day starts at 1:00.
        ("America/Havana", 0, "2026-03-08T12:00", "2026-03-08T05:00"),
        # 1:00 comes twice and the clock never goes below it again: the first.
        ("America/New_York", 1, "2026-11-01T12:00", "2026-11-01T05:00"),
        # Midnight comes twice, with most of an hour of the day before in between: the second.
        ("America/St_Johns", 0, "2010-11-07T12:00", "2010-11-07T03:30"),
    ],
)
def test_the_start_of_the_window(zone: str, hour: int, at: str, expected: str) -> None:
    assert window_start_at(zone, hour, utc(at)) == utc(expected)


def test_a_day_that_the_zone_skipped_is_passed_over() -> None:
    fridays = Window(days=frozenset({4}), zone="Pacific/Apia")
    assert date(2011, 12, 30).weekday() == 4
    assert opens_at(fridays, utc("2011-12-30T05:00")) == utc("2012-01-05T16:00")


def test_a_window_that_a_clock_change_swallows_opens_the_next_day() -> None:
    two_to_three = Window(start_hour=2, end_hour=3, zone="America/New_York")
    sunday = utc("2026-03-08T06:00")
    assert opens_at(two_to_three, sunday) == utc("2026-03-09T06:00")
    assert isinstance(on_fire(two_to_three, sunday + timedelta(hours=6)), Waits)


def test_a_whole_day_window_reopens_at_the_midnight_it_closes_at() -> None:
    always = Window(start_hour=0, end_hour=24, zone="UTC")
    midnight = closes_at(always, utc("2026-05-10T13:00"))
    assert midnight == utc("2026-05-11T00:00")
    assert opens_at(always, midnight) == midnight


BUSINESS = Window(start_hour=9, end_hour=18, days=frozenset(range(5)), zone="UTC")


@pytest.mark.parametrize(
    ("fired_at", "expected"),
    [
        # Monday, before the start: waits for it.
        ("2026-05-11T04:00", Waits(opens_at=utc("2026-05-11T09:00"), closes_at=utc("2026-05-11T18:00"))),
        # At the start and during the day: sends.
        ("2026-05-11T09:00", Open(closes_at=utc("2026-05-11T18:00"))),
        ("2026-05-11T17:59:59", Open(closes_at=utc("2026-05-11T18:00"))),
        # At the end and after it: missed, even though tomorrow is a send day.
        ("2026-05-11T18:00", Missed(closed_at=utc("2026-05-11T18:00"))),
        ("2026-05-11T23:00", Missed(closed_at=utc("2026-05-11T18:00"))),
        # Friday night is missed; Saturday has no window to miss, at no hour.
        ("2026-05-15T20:00", Missed(closed_at=utc("2026-05-15T18:00"))),
        ("2026-05-16T10:00", Waits(opens_at=utc("2026-05-18T09:00"), closes_at=utc("2026-05-18T18:00"))),
        ("2026-05-16T20:00", Waits(opens_at=utc("2026-05-18T09:00"), closes_at=utc("2026-05-18T18:00"))),
    ],
)
def test_what_a_run_does_by_the_time_it_is_fired(fired_at: str, expected: object) -> None:
    assert on_fire(BUSINESS, utc(fired_at)) == expected


@pytest.mark.parametrize(
    ("sent", "pending", "resumes_by_itself", "planned_later", "day_full", "expected"),
    [
        # Nothing is left to do, whoever would have resumed it.
        (10, 0, False, False, False, CloseMove.SETTLE),
        (0, 0, True, False, False, CloseMove.SETTLE),
        # Cut short: a person is asked, from the first sent message on.
        (412, 588, False, False, False, CloseMove.PAUSE),
        (1, 1, False, False, False, CloseMove.PAUSE),
        # Nothing was sent: nothing to resume.
        (0, 1000, False, False, False, CloseMove.FAIL),
        # The operator chose that it resumes by itself.
        (412, 588, True, False, False, CloseMove.CARRY_ON),
        (0, 1000, True, False, False, CloseMove.CARRY_ON),
        (20, 80, True, True, True, CloseMove.CARRY_ON),
        # A drip: all that is left belongs to later days.
        (20, 80, False, True, False, CloseMove.CARRY_ON),
        (0, 100, False, True, False, CloseMove.CARRY_ON),
        # A daily cap moved all that is left to later days: a person is asked, even before the first message.
        (20, 80, False, True, True, CloseMove.PAUSE),
        (0, 100, False, True, True, CloseMove.PAUSE),
    ],
)
def test_what_a_run_does_when_its_window_closes(
    sent: int,
    pending: int,
    resumes_by_itself: bool,
    planned_later: bool,
    day_full: bool,
    expected: CloseMove,
) -> None:
    move = on_close(
        sent=sent,
        pending=pending,
        resumes_by_itself=resumes_by_itself,
        planned_later=planned_later,
        day_full=day_full,
    )
    assert move is expected


def test_a_guard_longer_than_the_window_leaves_no_time_to_begin() -> None:
    one_hour = Window(start_hour=9, end_hour=10, zone="UTC")
    now = utc("2026-05-11T09:30")
    assert sendable_until(one_hour, now, 2 * 3600) < window_start_at("UTC", 9, now)


def test_a_negative_guard_is_refused() -> None:
    with pytest.raises(ValueError, match="after the window's end"):
        sendable_until(BUSINESS, utc("2026-05-11T10:00"), -1)


def test_the_default_window_is_six_to_eighteen_on_all_days() -> None:
    window = Window(zone="UTC")
    assert (window.start_hour, window.end_hour, window.days) == (6, 18, frozenset(range(7)))


@given(st.integers(-30, 60), st.integers(-30, 60))
@settings(max_examples=200, deadline=None)
def test_a_window_is_accepted_exactly_within_a_day_and_forwards(start: int, end: int) -> None:
    if 0 <= start < end <= 24:
        assert Window(start_hour=start, end_hour=end, zone="UTC").end_hour == end
    else:
        with pytest.raises(BadWindowError):
            Window(start_hour=start, end_hour=end, zone="UTC")


@pytest.mark.parametrize(
    ("start", "end", "sentence"),
    [
        (22, 6, "overnight"),
        (24, 0, "overnight"),
        (6, 6, "never open"),
        (24, 24, "never open"),
        (-1, 6, "go from 0 to 24"),
        (6, 25, "go from 0 to 24"),
    ],
)
def test_each_wrong_pair_of_hours_has_its_own_sentence(start: int, end: int, sentence: str) -> None:
    with pytest.raises(BadWindowError, match=sentence):
        Window(start_hour=start, end_hour=end, zone="UTC")


@pytest.mark.parametrize(
    ("days", "sentence"), [(frozenset(), "at least one day"), (frozenset({0, 7}), r"not \[7\]")]
)
def test_send_days_that_are_none_or_no_days_are_refused(days: frozenset[int], sentence: str) -> None:
    with pytest.raises(BadWindowError, match=sentence):
        Window(days=days, zone="UTC")


@pytest.mark.parametrize(
    "zone", ["", "Nowhere/Here", "Europe", "../etc/passwd", "/etc/localtime", "x" * 300, "a\0b"]
)
def test_a_name_that_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadWindowError, match="is not a time zone"):
        Window(zone=zone)


def test_a_time_without_a_zone_is_refused() -> None:
    naive = datetime(2026, 5, 11, 10)  # noqa: DTZ001
    with pytest.raises(ValueError, match="not a moment"):
        is_open(BUSINESS, naive)
