"""Moments always come with their zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from activity.components.times import in_zones, length, short, span, zone_label
from activity.templatetags.paceline import moment

BERLIN, KUALA_LUMPUR = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kuala_Lumpur")
MORNING = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "label"),
    [
        ("Europe/Berlin", "CET"),
        ("Asia/Kuala_Lumpur", "UTC+8"),  # its own name is only "+08"
        ("Asia/Kathmandu", "UTC+5:45"),
        ("America/St_Johns", "NST"),
        ("America/Caracas", "UTC-4"),
        ("UTC", "UTC"),
    ],
)
def test_a_zone_is_named_so_that_people_know_it(zone: str, label: str) -> None:
    assert zone_label(MORNING.astimezone(ZoneInfo(zone))) == label


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (datetime(2026, 11, 20, 22, 59, tzinfo=UTC), "today 09:00"),
        (datetime(2026, 11, 20, 23, 0, tzinfo=UTC), "20 Nov, 09:00"),  # the next day in Berlin
        (datetime(2027, 1, 5, 12, 0, tzinfo=UTC), "20 Nov 2026, 09:00"),
    ],
)
def test_a_moment_says_as_much_as_is_needed(now: datetime, words: str) -> None:
    assert short(MORNING.astimezone(BERLIN), now) == words


def test_each_zone_is_told_once() -> None:
    lines = in_zones(MORNING, BERLIN, BERLIN, KUALA_LUMPUR).splitlines()
    assert lines == [
        "Friday 20 November 2026, 09:00:00 CET (Europe/Berlin)",
        "Friday 20 November 2026, 16:00:00 UTC+8 (Asia/Kuala_Lumpur)",
    ]


def test_a_time_on_a_page_shows_its_zone_and_hints_at_the_readers_own() -> None:
    with timezone.override(KUALA_LUMPUR):
        shown = moment(MORNING, "Europe/Berlin")
    assert 'datetime="2026-11-20T08:00:00+00:00"' in shown
    assert "09:00 <small" in shown
    assert "Asia/Kuala_Lumpur" in shown


def test_no_time_is_a_dash() -> None:
    assert "\N{EN DASH}" in moment(None)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(minutes=15), "15 minutes"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(hours=2), "2 hours"),
        (timedelta(days=1), "1 day"),
        (timedelta(seconds=20), "a minute"),
    ],
)
def test_a_span_is_told_in_its_largest_unit(length: timedelta, words: str) -> None:
    assert span(length) == words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (60, "60 s"), (89, "89 s"), (90, "1 min 30 s"), (125, "2 min 5 s"), (3780, "1 h 3 min")],
)
def test_a_clock_counts_in_seconds_then_in_minutes(seconds: int, said: str) -> None:
    assert length(seconds) == said
