"""Switching reminders on and off."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from reminders.models import Reminder
from reminders.readiness import NotReadyError, Step, problems
from reminders.scheduling import reschedule, schedule, switch_off
from tests.factories import AccountFactory, PartFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)  # a Wednesday, 9:30 in Berlin
LATER = NOW + timedelta(hours=2)


def ready(owner: User, **values: Any) -> Reminder:
    """One to which nothing is missing, due in two hours unless it says otherwise."""
    given = {"recipients": 1, "zone": "Europe/Berlin", "fire_at": LATER} | values
    return ReminderFactory.create(owner=owner, **given)


def repeating(owner: User, cron: str = "0 9 * * 1-5", **values: Any) -> Reminder:
    return ready(owner, schedule="cron", cron=cron, fire_at=None, **values)


@pytest.fixture(autouse=True)
def _now() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


def test_a_one_off_is_due_at_its_time(owner: User) -> None:
    scheduled = schedule(ready(owner), by=owner)
    assert (scheduled.status, scheduled.next_fire_at) == ("scheduled", LATER)
    assert Reminder.objects.get().next_fire_at == LATER


def test_a_repeating_one_is_due_when_its_own_clock_says_so(owner: User) -> None:
    assert schedule(repeating(owner)).next_fire_at == datetime(2026, 3, 12, 8, tzinfo=UTC)
    assert schedule(repeating(owner, zone="America/New_York")).next_fire_at == NOW.replace(hour=13, minute=0)


def test_one_that_is_fired_by_hand_is_ready_and_never_due(owner: User) -> None:
    scheduled = schedule(ready(owner, by_hand=True, fire_at=None))
    assert (scheduled.status, scheduled.next_fire_at) == ("scheduled", None)


def test_scheduling_twice_changes_nothing(owner: User) -> None:
    reminder = schedule(repeating(owner))
    assert schedule(reminder).next_fire_at == reminder.next_fire_at


def test_one_that_was_switched_off_is_not_due_until_it_is_scheduled_again(owner: User) -> None:
    reminder = switch_off(schedule(repeating(owner)), by=owner)
    assert (reminder.status, reminder.next_fire_at) == ("off", None)
    assert switch_off(reminder).status == "off"
    assert schedule(reminder).next_fire_at == datetime(2026, 3, 12, 8, tzinfo=UTC)


def test_switching_off_a_draft_leaves_it_a_draft(owner: User) -> None:
    assert switch_off(ready(owner)).status == "draft"


def test_after_an_edit_a_scheduled_one_follows_its_new_times(owner: User) -> None:
    reminder = schedule(repeating(owner))
    reminder.cron, reminder.zone = "0 14 * * *", "UTC"
    reminder.save()
    assert reschedule(reminder, by=owner).next_fire_at == NOW.replace(hour=14, minute=0)


def test_after_an_edit_a_draft_stays_a_draft(owner: User) -> None:
    assert reschedule(ready(owner)).status == "draft"


@pytest.mark.parametrize("values", [{"fire_at": LATER}, {"schedule": "cron", "cron": "30 11 * * *"}])
def test_a_moment_that_has_come_is_not_lost_to_an_edit_of_something_else(
    owner: User, values: dict[str, Any]
) -> None:
    reminder = schedule(ready(owner, **values))
    assert reminder.next_fire_at == LATER
    reminder.name = "Renamed"
    reminder.save()
    with time_machine.travel(LATER + timedelta(seconds=1), tick=False):
        assert reschedule(reminder).next_fire_at == LATER


def test_a_moment_that_has_come_is_dropped_when_the_reminder_is_moved_away_from_it(owner: User) -> None:
    reminder = schedule(repeating(owner, cron="30 11 * * *"))
    reminder.cron = "0 9 * * *"
    reminder.save()
    with time_machine.travel(LATER + timedelta(seconds=1), tick=False):
        assert reschedule(reminder).next_fire_at == datetime(2026, 3, 12, 8, tzinfo=UTC)


def test_a_moment_that_was_dealt_with_does_not_come_back(owner: User) -> None:
    """A one-off that is done keeps its time; scheduling it again needs another."""
    reminder = ready(owner, done=True, fire_at=NOW - timedelta(minutes=1))
    with pytest.raises(NotReadyError, match=r"Wed 11 Mar, 09:29 \(Europe/Berlin\) is in the past"):
        schedule(reminder)


FAULTS: list[tuple[dict[str, Any], Step, str]] = [
    ({"parts": 0}, Step.MESSAGE, "no message"),
    ({"accounts": 0}, Step.ACCOUNTS, "no account"),
    ({"recipients": 0}, Step.RECIPIENTS, "no recipients"),
    ({"fire_at": None}, Step.WHEN, "no time"),
    ({"fire_at": NOW}, Step.WHEN, "is in the past. Choose a later time"),
    ({"fire_at": NOW.replace(hour=19)}, Step.WHEN, "Wed 11 Mar, 20:30 (Europe/Berlin) is after the delivery"),
    ({"schedule": "cron", "cron": "61 9 * * *"}, Step.WHEN, "“61” is not possible as the minute"),
    ({"schedule": "cron", "cron": ""}, Step.WHEN, "has 0 of the five fields"),
    ({"schedule": "cron", "cron": "0 20 * * *"}, Step.WHEN, "nothing would be sent"),
    ({"schedule": "cron", "cron": "0 9 * 2 MON#5", "zone": "Mars/Base"}, Step.WHEN, "not a time zone"),
    ({"archived": True}, Step.REVIEW, "archived"),
]


@pytest.mark.parametrize(("values", "step", "sentence"), FAULTS, ids=[sentence for *_, sentence in FAULTS])
def test_one_that_is_not_ready_is_refused_and_says_which_step_is_at_fault(
    owner: User, values: dict[str, Any], step: Step, sentence: str
) -> None:
    reminder = ready(owner, **values)
    with pytest.raises(NotReadyError) as refused:
        schedule(reminder)
    (problem,) = refused.value.problems
    assert problem.step is step
    assert sentence in problem.sentence
    assert str(refused.value) == f"{step.capitalize()}: {problem.sentence}"
    assert Reminder.objects.get().status == "draft"


def test_a_cron_that_is_sometimes_outside_the_hours_is_fine(owner: User) -> None:
    assert problems(repeating(owner, cron="0 * * * *")) == []


def test_everything_that_is_wrong_is_said_at_once(owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, parts=0, accounts=0)
    assert [problem.step for problem in problems(reminder)] == [
        Step.MESSAGE,
        Step.ACCOUNTS,
        Step.RECIPIENTS,
        Step.WHEN,
    ]


def test_a_second_message_alone_is_no_message(owner: User) -> None:
    reminder = ready(owner, parts=0)
    PartFactory.create(reminder=reminder, second=True)
    assert [problem.step for problem in problems(reminder)] == [Step.MESSAGE]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"archived": True}, "is archived"),
        ({"by_email": True}, "sends by E-mail, but this reminder is sent"),
    ],
)
def test_an_account_that_cannot_send_it_is_named(owner: User, values: dict[str, Any], sentence: str) -> None:
    account = AccountFactory.create(owner=owner, **values)
    (problem,) = problems(ready(owner, accounts=[account]))
    assert problem.step is Step.ACCOUNTS
    assert str(account) in problem.sentence
    assert sentence in problem.sentence


def test_an_account_that_is_stopped_may_be_started_by_then(owner: User) -> None:
    assert problems(ready(owner, accounts=[AccountFactory.create(owner=owner, offline=True)])) == []


def test_recipients_by_tag_are_enough_and_those_who_opted_out_are_not(owner: User) -> None:
    tag = TagFactory.create(owner=owner)
    reminder = ready(owner, recipients=[RecipientFactory.create(owner=owner, opted_out=True)], tags=[tag])
    (problem,) = problems(reminder)
    assert "they opted out, are blocked" in problem.sentence
    RecipientFactory.create(owner=owner, tags=[tag])
    assert problems(reminder) == []


def test_checking_costs_the_same_however_many_recipients_there_are(owner: User) -> None:
    few, many = ready(owner, recipients=1), ready(owner, recipients=60)
    with CaptureQueriesContext(connection) as for_few:
        problems(few)
    with CaptureQueriesContext(connection) as for_many:
        problems(many)
    assert len(for_few) == len(for_many) <= 5


@pytest.mark.parametrize("who", ["owner", "mate", "staff"])
def test_those_who_may_touch_it_switch_it_on_and_off(who: str, request: pytest.FixtureRequest) -> None:
    reminder = ready(request.getfixturevalue("owner"))
    by: User = request.getfixturevalue(who)
    assert schedule(reminder, by=by).status == "scheduled"
    assert reschedule(reminder, by=by).status == "scheduled"
    assert switch_off(reminder, by=by).status == "off"


@pytest.mark.parametrize("who", ["stranger", "reader"])
@pytest.mark.parametrize("move", [schedule, reschedule, switch_off])
def test_others_do_not(who: str, move: Any, request: pytest.FixtureRequest) -> None:
    reminder = ready(request.getfixturevalue("owner"), scheduled=True)
    with pytest.raises(PermissionDenied, match="You may not change"):
        move(reminder, by=request.getfixturevalue(who))
    assert Reminder.objects.get().status == "scheduled"
