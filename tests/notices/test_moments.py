"""When a notice is sent: quiet hours over midnight and over changes of the clock, gathering, and not too often."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notices.moments import APART, DAILY, HOURLY, SAME_APART, Quiet, Rules, due_at, is_quiet

BERLIN, UTC_ZONE, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC"), ZoneInfo("Asia/Kathmandu")
NIGHT = Quiet(start=time(22), end=time(7))


def rules(
    *, quiet: Quiet | None = None, rhythm: str = "at_once", zone: ZoneInfo = BERLIN, daily_at: time = time(8)
) -> Rules:
    return Rules(zone=zone, rhythm=rhythm, daily_at=daily_at, quiet=quiet)


def berlin(day: int, hour: int, minute: int = 0, *, month: int = 11, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("now", "sent"),
    [
        (berlin(19, 21, 59), berlin(19, 21, 59)),
        (berlin(19, 22), berlin(20, 7)),  # before midnight
        (berlin(20, 0), berlin(20, 7)),
        (berlin(20, 6, 59), berlin(20, 7)),  # after midnight
        (berlin(20, 7), berlin(20, 7)),
    ],
)
def test_what_falls_into_the_night_waits_for_the_morning(now: datetime, sent: datetime) -> None:
    assert due_at(now, rules(quiet=NIGHT)) == sent


def test_quiet_hours_may_lie_within_a_day() -> None:
    noon = Quiet(start=time(12), end=time(13, 30))
    assert due_at(berlin(19, 12, 30), rules(quiet=noon)) == berlin(19, 13, 30)
    assert due_at(berlin(19, 14), rules(quiet=noon)) == berlin(19, 14)


def test_the_night_in_which_an_hour_is_left_out_ends_by_the_clock_on_the_wall() -> None:
    # 29 March 2026: 2:00 becomes 3:00.
    before = datetime(2026, 3, 28, 23, tzinfo=BERLIN)
    assert due_at(before, rules(quiet=NIGHT)) == datetime(2026, 3, 29, 7, tzinfo=BERLIN)
    assert due_at(before, rules(quiet=NIGHT)) - before == timedelta(hours=7)


def test_quiet_that_ends_in_the_hour_that_is_left_out_ends_after_it() -> None:
    quiet = Quiet(start=time(22), end=time(2, 30))
    found = due_at(datetime(2026, 3, 29, 0, tzinfo=BERLIN), rules(quiet=quiet))
    assert found.astimezone(BERLIN).time() == time(3, 30)


def test_the_night_in_which_an_hour_comes_twice_is_an_hour_longer() -> None:
    # 25 October 2026: 3:00 becomes 2:00.
    before = datetime(2026, 10, 24, 23, tzinfo=BERLIN)
    assert due_at(before, rules(quiet=NIGHT)).astimezone(UTC) - before.astimezone(UTC) == timedelta(hours=9)


def test_the_hour_that_comes_twice_is_quiet_twice() -> None:
    quiet = Quiet(start=time(1), end=time(2, 30))
    second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=BERLIN)
    assert due_at(second, rules(quiet=quiet)).astimezone(UTC) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_an_hour_is_the_hour_of_the_persons_zone() -> None:
    now = datetime(2026, 11, 19, 10, 5, tzinfo=UTC)  # 15:50 in Kathmandu
    assert due_at(now, rules(rhythm=HOURLY, zone=KATHMANDU)) == datetime(2026, 11, 19, 10, 15, tzinfo=UTC)
    assert due_at(now, rules(rhythm=HOURLY)) == datetime(2026, 11, 19, 11, tzinfo=UTC)


def test_once_a_day_is_the_next_time_that_the_clock_shows() -> None:
    assert due_at(berlin(19, 7, 59), rules(rhythm=DAILY)) == berlin(19, 8)
    assert due_at(berlin(19, 8), rules(rhythm=DAILY)) == berlin(20, 8)


def test_a_message_of_the_day_in_quiet_hours_waits_for_their_end() -> None:
    assert due_at(berlin(19, 12), rules(rhythm=DAILY, quiet=NIGHT, daily_at=time(6))) == berlin(20, 7)


def test_the_same_about_the_same_waits_half_an_hour_and_anything_else_a_minute() -> None:
    now = berlin(19, 12)
    assert due_at(now, rules(), same_sent_at=now - timedelta(minutes=10)) == now + timedelta(minutes=20)
    assert due_at(now, rules(), same_sent_at=now - timedelta(hours=1)) == now
    assert due_at(now, rules(), last_sent_at=now - timedelta(seconds=20)) == now + timedelta(seconds=40)


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
WALLS = st.times().map(lambda wall: wall.replace(second=0, microsecond=0))
MOMENTS = st.integers(min_value=0, max_value=2 * 365 * 24 * 3600).map(
    lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@st.composite
def quiets(draw: st.DrawFn) -> Quiet | None:
    start, end = draw(WALLS), draw(WALLS)
    return None if start == end else Quiet(start=start, end=end)


@given(
    now=MOMENTS,
    zone=ZONES,
    quiet=quiets(),
    rhythm=st.sampled_from(["at_once", "hourly", "daily"]),
    daily_at=WALLS,
    same=st.none() | st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=2)),
    last=st.none() | st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=2)),
)
def test_it_is_never_early_never_in_quiet_hours_and_never_lost(
    now: datetime,
    zone: str,
    quiet: Quiet | None,
    rhythm: str,
    daily_at: time,
    same: timedelta | None,
    last: timedelta | None,
) -> None:
    place = ZoneInfo(zone)
    found = due_at(
        now,
        rules(quiet=quiet, rhythm=rhythm, zone=place, daily_at=daily_at),
        same_sent_at=None if same is None else now - same,
        last_sent_at=None if last is None else now - last,
    )
    assert found >= now
    assert quiet is None or not is_quiet(found, quiet, place)
    assert same is None or found >= now - same + SAME_APART
    assert last is None or found >= now - last + APART
    assert found - now < timedelta(days=2, hours=2), "at most the gathering of a day, and a night"


@given(now=MOMENTS, quiet=quiets(), minutes=st.integers(min_value=0, max_value=60 * 24))
def test_where_no_clock_is_changed_quiet_ends_at_the_first_moment_that_is_not_quiet(
    now: datetime, quiet: Quiet | None, minutes: int
) -> None:
    found = due_at(now, rules(quiet=quiet, zone=UTC_ZONE))
    between = now + timedelta(minutes=minutes)
    if quiet is not None and between < found:
        assert is_quiet(between, quiet, UTC_ZONE)


@given(now=MOMENTS, later=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3)), quiet=quiets())
def test_what_happens_later_is_not_sent_earlier(now: datetime, later: timedelta, quiet: Quiet | None) -> None:
    chosen = rules(quiet=quiet)
    assert due_at(now + later, chosen) >= due_at(now, chosen)
