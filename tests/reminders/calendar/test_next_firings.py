"""The next firings, in the terminal."""

import json
import re
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from reminders.calendar.next_firings import next_firings, rhythm
from reminders.models import Reminder
from reminders.scheduling import schedule
from tests.factories import RecipientFactory, ReminderFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _now() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


def scheduled(owner: User, cron: str, **values: Any) -> Reminder:
    given = {"recipients": 2, "schedule": "cron", "cron": cron, "zone": "Europe/Berlin"} | values
    return schedule(ReminderFactory.create(owner=owner, **given))


def said(*arguments: Any, **options: Any) -> list[str]:
    out = StringIO()
    call_command("next_firings", *arguments, stdout=out, **options)
    return out.getvalue().splitlines()


def test_firings_of_all_reminders_come_in_the_order_of_time(owner: User) -> None:
    often = scheduled(owner, "0 */2 * * *")
    seldom = scheduled(owner, "0 9 * * *", zone="America/New_York")
    ReminderFactory.create(owner=owner, off=True, schedule="cron", cron="* * * * *")
    found = next_firings(Reminder.objects.all(), most=4)
    assert [(firing.at.hour, firing.reminder) for firing in found] == [
        (9, often),
        (11, often),
        (13, often),
        (13, seldom),
    ]


def test_the_table_says_when_what_whose_to_how_many_and_how_often(owner: User) -> None:
    audience = RecipientFactory.create_batch(3, owner=owner, group=True)
    one = scheduled(owner, "0 9 * * 1-5", name="School fair", recipients=audience)
    weekdays = "At 09:00 on Monday through Friday"
    two = scheduled(owner, "", name="Once only", schedule="once", fire_at=NOW.replace(hour=10))
    header, *lines = said(most=3)
    then = "Fri 09:00, Mon 09:00"
    assert [re.split(" {2,}", line) for line in (header, *lines)] == [
        ["When", "Then", "Reminder", "Owner", "To", "How often"],
        ["Wed 2026-03-11 11:30 Europe/Berlin", f"{two.pk} Once only", "owner", "2 people", "Once"],
        ["Thu 2026-03-12 09:00 Europe/Berlin", then, f"{one.pk} School fair", "owner", "3 groups", weekdays],
    ]
    assert {line.index("owner") for line in lines} == {header.index("Owner")}


def test_one_that_fires_every_minute_leaves_room_for_the_others(owner: User) -> None:
    scheduled(owner, "* * * * *")
    seldom = scheduled(owner, "0 9 * * *")
    assert f"{seldom.pk} {seldom}" in said(most=2)[-1]


def test_as_json_it_has_every_moment_with_its_zone(owner: User) -> None:
    reminder = scheduled(owner, "0 9 * * *", name="Fair")
    (found,) = json.loads("\n".join(said(json=True)))
    assert (found["reminder"], found["zone"], found["to"]) == (reminder.pk, "Europe/Berlin", "2 people")
    assert found["moments"] == ["2026-03-12T08:00:00Z", "2026-03-13T08:00:00Z", "2026-03-14T08:00:00Z"]


def test_a_reminder_alone_shows_its_next_firings(owner: User) -> None:
    scheduled(owner, "0 7 * * *")
    chosen = scheduled(owner, "0 9 * * *")
    assert len(said(chosen.pk, most=5)) == 6
    assert all(f"{chosen.pk} {chosen}" in line for line in said(chosen.pk)[1:])


def test_a_user_sees_what_is_theirs(owner: User, stranger: User, reader: User) -> None:
    scheduled(owner, "0 9 * * *")
    assert len(said(user="reader", most=1)) == 2
    assert said(user="stranger") == ["Nothing is scheduled."]


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((404,), {}, "no reminder 404"),
        ((), {"user": "nobody"}, "no user nobody"),
        ((), {"most": 0}, "at least 1"),
    ],
)
def test_what_is_not_there_is_exit_code_2(arguments: Any, options: Any, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as error:
        said(*arguments, **options)
    assert error.value.returncode == 2


def test_the_cost_is_that_of_what_is_shown(owner: User) -> None:
    for minute in range(12):
        scheduled(owner, f"{minute} 9 * * *")
    with CaptureQueriesContext(connection) as queries:
        said(most=3)
    assert len(queries) == 1 + 2 * 3


def test_one_that_is_fired_by_hand_says_so(owner: User) -> None:
    assert rhythm(ReminderFactory.create(owner=owner, by_hand=True)) == "Manual"
