"""Due moments: on any clock, over any change of it, each reading once."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reminders.moments import (
    MOST_COUNTED,
    Backlog,
    BadCronError,
    Once,
    Repeating,
    backlog,
    check_cron,
    has_moment,
    in_words,
    instant_of,
    next_moment,
    upcoming,
)

# Summer time in both halves of the world, of half an hour, at midnight, over the date line, and none at all.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/St_Johns",
    "Asia/Kuala_Lumpur",
    "Asia/Tehran",
    "Asia/Beirut",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
)
CRONS = (
    "* * * * *",
    "*/10 * * * *",
    "*/7 1-3 * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "15 0,2,12 * * *",
    "0 9 * * 1-5",
    "0 9 L * *",
    "0 9 29 2 *",
    "30 1 * * SUN#1",
)
SOON = timedelta(days=1, hours=6)
LATENESS = timedelta(minutes=15)
timetables = st.builds(Repeating, cron=st.sampled_from(CRONS), zone=st.sampled_from(ZONES))
moments = st.datetimes(datetime(2011, 6, 1), datetime(2032, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def reading(moment: datetime, zone: str) -> datetime:
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def changes(zone: str, year: int) -> list[datetime]:
    """The instants of a year at which the clock of a zone is changed."""
    minutes = (
        datetime(year, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * step) for step in range(4 * 24 * 366)
    )
    offsets = [(minute, minute.astimezone(ZoneInfo(zone)).utcoffset()) for minute in minutes]
    return [after for (_, old), (after, new) in pairwise(offsets) if old != new]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        # 2026-03-29 in Berlin jumps from 2:00 to 3:00, and 2026-10-25 from 3:00 back to 2:00.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00Z", ["03-29T01:00", "03-30T00:30"]),
        ("Europe/Berlin", "*/20 * * * *", "2026-03-29T00:40Z", ["03-29T01:00", "03-29T01:20"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", ["10-25T00:30", "10-26T01:30"]),
        ("Europe/Berlin", "0 * * * *", "2026-10-24T23:30Z", ["10-25T00:00", "10-25T02:00"]),
        # Asked while the hour is repeated.
        ("Europe/Berlin", "*/30 * * * *", "2026-10-25T01:15Z", ["10-25T02:00", "10-25T02:30"]),
        # Havana changes at midnight, Lord Howe by half an hour, and Apia left out 30 December 2011.
        ("America/Havana", "0 0 * * *", "2026-03-07T12:00Z", ["03-08T05:00", "03-09T04:00"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00Z", ["10-03T15:30", "10-04T15:15"]),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29T00:00Z", ["12-29T19:00", "12-30T10:00"]),
        ("Asia/Kuala_Lumpur", "0 9 * * 1-5", "2026-11-20T02:00Z", ["11-23T01:00", "11-24T01:00"]),
    ],
)
def test_the_wall_clock_of_the_zone_decides(zone: str, cron: str, after: str, expected: list[str]) -> None:
    found = upcoming(Repeating(cron=cron, zone=zone), after=datetime.fromisoformat(after), count=2)
    assert [f"{moment:%m-%dT%H:%M}" for moment in found] == expected


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("year", [2026, 2011])
def test_around_every_clock_change_each_reading_is_due_once(zone: str, year: int) -> None:
    """Minute by minute: all readings of the clock, each at the first instant that shows it, and no other instant."""
    for change in changes(zone, year):
        first = change - timedelta(hours=4)
        instants = [first + timedelta(minutes=minute) for minute in range(8 * 60)]
        seen: dict[datetime, datetime] = {}
        for instant in instants:
            seen.setdefault(reading(instant, zone), instant)
        every_minute = Repeating(cron="* * * * *", zone=zone)
        due = upcoming(every_minute, after=first - timedelta(seconds=1), count=len(seen))
        assert due == sorted(seen.values())


@given(timetable=timetables, after=moments)
@settings(max_examples=100, deadline=None)
def test_moments_come_one_after_the_other_and_only_asking_later_skips_one(
    timetable: Repeating, after: datetime
) -> None:
    found = upcoming(timetable, after=after, count=4)
    assert found == sorted(set(found))
    assert found[0] > after
    assert all(moment.tzinfo is UTC and moment.second == moment.microsecond == 0 for moment in found)
    assert all(has_moment(timetable, moment) for moment in found)
    for before, following in zip([after, *found], found, strict=False):
        between = before + (following - before) / 2
        assert next_moment(timetable, after=before) == following
        assert next_moment(timetable, after=between) == following


@given(timetable=timetables, due=moments, late=st.timedeltas(timedelta(), SOON))
@settings(max_examples=100, deadline=None)
def test_of_a_backlog_the_newest_fires_unless_it_is_too_late_and_the_others_are_counted(
    timetable: Repeating, due: datetime, late: timedelta
) -> None:
    due_at = next_moment(timetable, after=due)
    assert due_at is not None
    now = due_at + late
    found = backlog(timetable, due_at=due_at, now=now, lateness=LATENESS)
    most = 2 * 1440 if "*" in timetable.cron.split()[1] else 100
    later = upcoming(timetable, after=due_at, count=most)
    past = [due_at, *(moment for moment in later if moment <= now)]
    if now - past[-1] < LATENESS:
        assert found.fires == past.pop()
    else:
        assert found.fires is None
    assert found.missed == min(len(past), MOST_COUNTED + 1)
    if past:
        assert (found.first_missed, found.last_missed) == (past[0], past[: MOST_COUNTED + 1][-1])


def test_a_year_of_missed_minutes_is_not_counted_to_its_end() -> None:
    every_minute = Repeating(cron="* * * * *", zone="UTC")
    now = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
    found = backlog(every_minute, due_at=now.replace(year=2025, second=0), now=now, lateness=LATENESS)
    assert found.fires == now.replace(second=0)
    assert found.missed == MOST_COUNTED + 1


def test_a_moment_on_time_misses_nothing() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    for timetable in (Once(at=noon), Repeating(cron="0 12 * * *", zone="UTC")):
        found = backlog(timetable, due_at=noon, now=noon + timedelta(seconds=2), lateness=LATENESS)
        assert found == Backlog(fires=noon)


@pytest.mark.parametrize(
    ("late", "fires"), [(LATENESS - datetime.resolution, True), (LATENESS, False), (2 * LATENESS, False)]
)
def test_a_single_moment_fires_before_the_limit_and_is_missed_from_it_on(
    late: timedelta, fires: bool
) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    found = backlog(Once(at=noon), due_at=noon, now=noon + late, lateness=LATENESS)
    missed = Backlog(fires=None, missed=1, first_missed=noon, last_missed=noon)
    assert found == (Backlog(fires=noon) if fires else missed)


def test_a_one_off_has_one_moment() -> None:
    noon = datetime(2026, 5, 1, 14, tzinfo=ZoneInfo("Europe/Berlin"))
    once = Once(at=noon)
    assert upcoming(once, after=noon - timedelta(days=1)) == [noon.astimezone(UTC)]
    assert next_moment(once, after=noon) is None


@pytest.mark.parametrize(
    ("zone", "wall", "expected"),
    [
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("Asia/Kuala_Lumpur", "2026-10-25T09:00", "2026-10-25T01:00Z"),
    ],
)
def test_a_time_that_a_person_types_is_a_moment_too(zone: str, wall: str, expected: str) -> None:
    assert instant_of(datetime.fromisoformat(wall), zone) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("cron", "sentence"),
    [
        ("", "has 0 of the five fields: minute, hour"),
        ("@daily", "has 1 of the five fields"),
        ("0 0 9 * * 1", "has 6 of the five fields"),
        ("60 9 * * *", "“60” is not possible as the minute. Write 0 to 59"),
        ("0 24 * * *", "“24” is not possible as the hour. Write 0 to 23"),
        ("0 9 32 * *", "“32” is not possible as the day of the month"),
        ("0 9 * 13 *", "“13” is not possible as the month"),
        ("0 9 * * FUN", "“FUN” is not possible as the day of the week. Write 0 to 7 or SUN to SAT"),
        ("*/0 9 * * *", "“*/0” is not possible as the minute"),
        ("0 9 * 4 MON#6", "“MON#6” is not possible as the day of the week"),
    ],
)
def test_an_expression_that_means_nothing_is_refused_with_what_to_write(cron: str, sentence: str) -> None:
    with pytest.raises(BadCronError) as refused:
        check_cron(cron)
    assert sentence in str(refused.value)
    assert "“0 9 * * 1-5” is 9:00 from Monday to Friday" in str(refused.value)


@given(
    cron=st.one_of(st.text(max_size=30), st.lists(st.text("0123456789*/-,#LWMON", max_size=6)).map(" ".join))
)
@settings(max_examples=100, deadline=None)
def test_nothing_that_is_typed_breaks_it(cron: str) -> None:
    try:
        words = in_words(cron)
    except BadCronError as error:
        words = str(error)
    assert words


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 * * 1-5", "At 09:00 on Monday through Friday"),
        ("30 2,14 * * *", "At 02:30 and 14:30 every day"),
        ("0 9 1 * 1", "At 09:00 on the first day of month and on Monday"),
        ("0 9 L * *", "At 09:00 on the last day of every month"),
        ("0 9 31 * *", "At 09:00 on the 31st day of every month"),
        ("0 9 */2 * 1", "At 09:00 on every second day of month if it's on Monday"),
    ],
)
def test_an_expression_is_told_in_words(cron: str, words: str) -> None:
    assert in_words(cron) == words


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 9 29 2 *", ["2028-02-29", "2032-02-29"]),
        ("0 9 31 * *", ["2026-01-31", "2026-03-31"]),
        ("0 9 * 2 MON#5", ["2044-02-29", "2072-02-29"]),
        # Either of day and weekday, unless one of them begins with a star: then both. No day of February is its 31st.
        ("0 9 13 * 5", ["2026-01-02", "2026-01-09"]),
        ("0 9 */2 * 1", ["2026-01-05", "2026-01-19"]),
        ("0 9 31 2 1", ["2026-02-02", "2026-02-09"]),
        ("0 9 LW * *", ["2026-01-30", "2026-02-27"]),
        ("0 9 * * 5L", ["2026-01-30", "2026-02-27"]),
        ("0 9 * * 0", ["2026-01-04", "2026-01-11"]),
        ("0 9 * * 7", ["2026-01-04", "2026-01-11"]),
    ],
)
def test_odd_days_come_when_cron_says(cron: str, expected: list[str]) -> None:
    found = upcoming(Repeating(cron=cron, zone="UTC"), after=datetime(2026, 1, 1, 10, tzinfo=UTC), count=2)
    assert [f"{moment:%Y-%m-%d}" for moment in found] == expected


@pytest.mark.parametrize(
    ("cron", "day"), [("0 9 31 2 *", "31"), ("0 9 31 4,6 *", "31"), ("0 9 30-31 FEB *", "30-31")]
)
def test_a_day_that_no_such_month_has_is_said_to_be_never(cron: str, day: str) -> None:
    with pytest.raises(BadCronError, match=f"has a day “{day}”, so it never fires"):
        check_cron(cron)
