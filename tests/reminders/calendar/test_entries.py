"""A calendar shows firings to come with their forecast, runs, and what clashes on one account."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from accounts.models import User
from delivery.models import Run
from reminders.calendar.entries import Entry, entries
from reminders.calendar.lengths import UNKNOWN, Lengths
from reminders.models import Reminder
from tests.factories import AccountFactory, ReminderFactory, RunAccountFactory, RunFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NOW = datetime(2026, 3, 11, 8, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture(autouse=True)
def _now() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


def shown(
    *, since: datetime = NOW, until: datetime = NOW + WEEK, lengths: Lengths | None = None
) -> list[Entry]:
    everything = Reminder.objects.all(), Run.objects.all()
    return entries(*everything, since=since, until=until, now=NOW, lengths=lengths)


def scheduled(owner: User, at: datetime, **values: Any) -> Reminder:
    given = {
        "status": "scheduled",
        "fire_at": at,
        "next_fire_at": at,
        "recipients": 80,
        "around_the_clock": True,
    }
    return ReminderFactory.create(owner=owner, **given | values)


def test_a_firing_is_as_long_as_its_forecast(owner: User) -> None:
    scheduled(owner, NOW + timedelta(hours=1), name="Fair")
    (entry,) = shown()
    assert (entry.title, entry.starts_at, entry.targets) == ("Fair", NOW + timedelta(hours=1), 80)
    assert timedelta(minutes=1) <= entry.ends_at - entry.starts_at < UNKNOWN


def test_each_moment_of_a_repeating_reminder_is_shown(owner: User) -> None:
    first = NOW.replace(hour=9)
    scheduled(owner, first, schedule="cron", cron="0 9 * * *", fire_at=None, recipients=1)
    assert [entry.starts_at for entry in shown(until=NOW + timedelta(days=3))] == [
        first + timedelta(days=day) for day in range(3)
    ]


def test_drafts_and_those_switched_off_are_not_shown(owner: User) -> None:
    for status in ("draft", "off"):
        scheduled(owner, NOW + timedelta(hours=1), status=status)
    scheduled(owner, NOW + timedelta(hours=1), archived=True)
    assert shown() == []


def test_two_on_one_account_at_the_same_time_clash_and_say_so(owner: User) -> None:
    account = AccountFactory.create(owner=owner, name="Office")
    for name in ("First", "Second"):
        scheduled(owner, NOW + timedelta(hours=1), name=name, accounts=[account])
    scheduled(owner, NOW + timedelta(hours=1), name="Elsewhere")
    clashes = {entry.title: list(entry.clashes) for entry in shown()}
    assert clashes == {
        "First": ["Office also sends “Second” at this time: one waits for the other."],
        "Second": ["Office also sends “First” at this time: one waits for the other."],
        "Elsewhere": [],
    }


def test_a_run_is_shown_from_its_start_to_its_end(owner: User) -> None:
    times = {"fired_at": NOW, "started_at": NOW, "finished_at": NOW + timedelta(minutes=9)}
    run = RunFactory.create(reminder__owner=owner, success=True, sent=3, **times)
    RunAccountFactory.create(run=run, account__name="Office")
    (entry,) = shown()
    assert (entry.ends_at, entry.status) == (NOW + timedelta(minutes=9), "success")
    assert list(entry.accounts.values()) == ["Office"]


def test_a_run_that_has_ended_clashes_with_nothing(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    times = {"fired_at": NOW, "started_at": NOW, "finished_at": NOW + timedelta(hours=2)}
    RunAccountFactory.create(
        run=RunFactory.create(reminder__owner=owner, success=True, sent=3, **times), account=account
    )
    scheduled(owner, NOW + timedelta(hours=1), accounts=[account])
    assert not any(entry.clashes for entry in shown())


def test_what_ended_before_the_first_day_is_not_shown(owner: User) -> None:
    ended = NOW - timedelta(days=2)
    RunFactory.create(reminder__owner=owner, success=True, sent=1, fired_at=ended, finished_at=ended)
    assert shown() == []


def test_a_page_forecasts_few_and_knows_the_others_once_they_were_forecast(owner: User) -> None:
    for hour in range(1, 4):
        scheduled(owner, NOW + timedelta(hours=hour))
    few = shown(lengths=Lengths(new=1))
    assert [entry.known for entry in few] == [True, False, False]
    assert {entry.ends_at - entry.starts_at for entry in few[1:]} == {UNKNOWN}

    everything = shown()

    assert shown(lengths=Lengths(new=0)) == everything
    assert all(entry.known and entry.targets == 80 for entry in everything)
