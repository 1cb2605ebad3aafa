"""The calendar and its feed: in the person's zone, for what they see, at an address that only they know."""

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from icalendar import Calendar
from redis import Redis

from accounts.models import User
from reminders.calendar import feed
from tests.factories import ReminderFactory

NOW = datetime(2026, 3, 11, 20, tzinfo=UTC)
PAGE = "/calendar/"


@pytest.fixture(autouse=True)
def _now() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def fair(owner: User, redis: Redis) -> None:
    at = NOW.replace(hour=22)
    ReminderFactory.create(
        owner=owner,
        name="Fair",
        status="scheduled",
        fire_at=at,
        next_fire_at=at,
        recipients=2,
        around_the_clock=True,
    )


def address(person: User) -> str:
    return reverse("calendar:feed", args=[feed.token_of(person)])


@pytest.mark.usefixtures("fair")
def test_a_week_is_shown_in_the_zone_of_the_person(client: Client, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(zone="Asia/Kuala_Lumpur")
    client.force_login(owner)
    answer = client.get(PAGE)
    days = {day.date.isoformat(): [bar.entry.title for bar in day.bars] for day in answer.context["days"]}
    assert next(iter(days)) == "2026-03-09"
    assert {day: titles for day, titles in days.items() if titles} == {"2026-03-12": ["Fair"]}
    assert "06:00 to" in " ".join(answer.content.decode().split())


@pytest.mark.usefixtures("fair")
@pytest.mark.parametrize("day", ["2026-03-11", "nonsense", "", "9999-12-31", "0001-01-01"])
def test_a_day_is_shown_by_its_address(client: Client, owner: User, day: str) -> None:
    client.force_login(owner)
    answer = client.get(PAGE, {"view": "day", "day": day})
    assert (answer.status_code, len(answer.context["days"])) == (200, 1)


@pytest.mark.usefixtures("fair")
def test_strangers_see_nothing_of_it_and_team_mates_do(client: Client, stranger: User, reader: User) -> None:
    for person, sees in ((stranger, False), (reader, True)):
        client.force_login(person)
        assert ("Fair" in client.get(PAGE).content.decode()) is sees


def test_visitors_log_in_first(client: Client, db: None) -> None:
    assert client.get(PAGE).status_code == 302


@pytest.mark.usefixtures("fair")
def test_the_feed_needs_no_login_and_is_a_calendar(client: Client, owner: User) -> None:
    answer = client.get(address(owner))
    assert answer["Content-Type"] == "text/calendar; charset=utf-8"
    (event,) = Calendar.from_ical(answer.content).walk("VEVENT")
    assert (str(event["summary"]), event.decoded("dtstart")) == ("Fair", NOW.replace(hour=22))
    assert str(event["url"]).startswith("http://testserver/reminders/")
    assert "To 2 recipients." in str(event["description"])


@pytest.mark.usefixtures("fair")
def test_the_feed_shows_a_person_what_they_may_see(client: Client, owner: User, stranger: User) -> None:
    assert b"VEVENT" not in client.get(address(stranger)).content


@pytest.mark.parametrize("token", ["1-abc", "abc", "-", "999999-0", "1" * 30])
def test_an_address_that_nobody_has_is_not_found(client: Client, owner: User, token: str) -> None:
    assert client.get(f"/calendar/{token}.ics").status_code == 404


def test_a_new_address_ends_the_old_one(client: Client, owner: User) -> None:
    old = address(owner)
    client.force_login(owner)
    client.post(reverse("calendar:renew"))
    owner.refresh_from_db()
    assert address(owner) != old
    assert (client.get(old).status_code, client.get(address(owner)).status_code) == (404, 200)


def test_a_person_who_was_locked_out_has_no_feed(client: Client, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert client.get(address(owner)).status_code == 404


def test_what_the_page_has_no_length_for_is_worked_out_when_the_page_asks(
    client: Client, owner: User, redis: Redis
) -> None:
    for hour in (21, 22, 23):
        at = NOW.replace(hour=hour)
        ReminderFactory.create(
            owner=owner, status="scheduled", fire_at=at, next_fire_at=at, recipients=2, around_the_clock=True
        )
    client.force_login(owner)
    page = client.get(PAGE, {"view": "day"})
    assert page.context["unknown"] == 2
    address = reverse("calendar:foresee") + "?view=day"
    assert f'data-recount="{address}"' in page.content.decode()
    assert client.get(address).json() == {"changed": True}
    assert client.get(PAGE, {"view": "day"}).context["unknown"] == 0
