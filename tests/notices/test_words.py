"""The words of messages: one thing as it is, several gathered, many cut."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from notices.words import MOST, Told, message

ZONE = ZoneInfo("Europe/Berlin")
SITE = "https://paceline.example"


def told(place: int = 1, *, times: int = 1) -> Told:
    at = datetime(2026, 11, 19, 9, place, tzinfo=UTC)
    return Told(
        title=f"News {place}", body="What happened.", url=f"/runs/{place}/", happened_at=at, number=times
    )


def test_one_thing_is_told_as_it_is() -> None:
    text = message([told()], site=SITE, zone=ZONE)
    assert (text.title, text.body) == ("News 1", f"What happened.\n{SITE}/runs/1/")


def test_one_that_stands_for_several_says_so() -> None:
    text = message([told(times=7)], site="", zone=ZONE)
    assert text.body == "What happened.\nThis happened 7 times; this is the newest."


def test_several_have_their_times_in_the_zone_of_the_person() -> None:
    text = message([told(1), told(2)], site="", zone=ZONE)
    assert text.title == "2 notifications"
    assert text.body == "19 Nov 10:01 News 1\nWhat happened.\n\n19 Nov 10:02 News 2\nWhat happened."


def test_of_many_the_newest_are_spelled_out() -> None:
    text = message([told(number) for number in range(MOST + 5)], site=SITE, zone=ZONE)
    assert text.title == f"{MOST + 5} notifications"
    assert text.body.startswith(f"5 older ones in your list: {SITE}/notifications/")
    assert ("News 4\n" in text.body, "News 5\n" in text.body) == (False, True)
    assert text.body.endswith(f"{SITE}/runs/24/")


def test_without_the_address_of_the_installation_there_are_no_links() -> None:
    text = message([told(number) for number in range(MOST + 1)], site="", zone=ZONE)
    assert "http" not in text.body
    assert text.body.startswith("1 older one.")
