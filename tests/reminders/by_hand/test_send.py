"""A reminder that is sent by hand: who is asked what, and what leaves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import Approval, User
from delivery import conf, lifecycle
from delivery.audience import RECEIVED
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from delivery.models import Run
from delivery.states import RunStatus, TargetStatus
from reminders import headcount, scheduling
from reminders.by_hand.last_look import EVERYONE, REST, LastLook, last_look
from reminders.by_hand.send import send
from reminders.fire import fire
from reminders.models import Reminder
from reminders.readiness import NotReadyError
from tests.delivery.stage import add_up, becomes, counted
from tests.factories import RecipientFactory, ReminderFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three recipients be many."""
    for place in ("reminders.by_hand.last_look.ASKS_ABOVE", "delivery.conf.ASKS_ABOVE"):
        monkeypatch.setattr(place, 2)


@pytest.fixture
def noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


def ready(owner: User, **values: Any) -> Reminder:
    defaults = {
        "recipients": 3,
        "scheduled": True,
        "by_hand": True,
        "around_the_clock": True,
        "fire_at": None,
    }
    return ReminderFactory.create(owner=owner, **defaults | values)


def sent(found: Run | LastLook | Approval) -> Run:
    assert isinstance(found, Run)
    return found


def asked(found: Run | LastLook | Approval) -> LastLook:
    assert isinstance(found, LastLook)
    assert not Run.objects.filter(status__in=["queued", "running"]).exists()
    return found


def confirmed(number: int = 3) -> dict[str, str]:
    return {"confirmed": "1", "number": str(number)}


def test_a_hundred_recipients_and_fewer_are_not_asked_about(owner: User) -> None:
    assert conf.ASKS_ABOVE == 100
    assert sent(send(ready(owner), by=owner, said={})).status == RunStatus.RUNNING


@pytest.mark.usefixtures("few")
def test_more_are_asked_about_with_the_number_the_account_the_names_and_the_last_time(owner: User) -> None:
    reminder = ready(owner)
    look = asked(send(reminder, by=owner, said={}))
    names = ", ".join(str(recipient) for recipient in reminder.recipients.order_by("pk"))
    assert look.sentences == [
        f"To 3 people: {names}. From {reminder.accounts.get()}, by WhatsApp. Last sent: Never sent before."
    ]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("said", [{"confirmed": "1"}, {"number": "3"}, confirmed(2), {"number": "x"}])
def test_only_the_number_that_was_seen_is_confirmed(owner: User, said: dict[str, str]) -> None:
    asked(send(ready(owner), by=owner, said=said))


@pytest.mark.usefixtures("few")
def test_people_who_came_since_the_look_are_asked_about_again(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long audience is counted once in some minutes, and a tag may have grown since."""
    monkeypatch.setattr(headcount, "KEPT_ABOVE", 2)
    tag = TagFactory.create(owner=owner)
    reminder = ready(owner)
    reminder.tags.add(tag)
    assert asked(send(reminder, by=owner, said={})).audience.complete == 3
    RecipientFactory.create(owner=owner, tags=[tag])
    assert asked(send(reminder, by=owner, said=confirmed())).audience.complete == 4
    assert sent(send(reminder, by=owner, said=confirmed(4))).total == 4


def test_a_run_that_came_and_ended_since_the_look_sends_nothing_twice(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another press is so slow, or the service so quick, that the first run has ended before the second begins."""
    reminder = ready(owner)

    def slow(*given: Any, **more: Any) -> LastLook:
        look = last_look(*given, **more)
        run = fire(reminder, by=owner)
        Run.objects.filter(pk=run.pk).update(status=RunStatus.SUCCESS, pending=0, sent=3)
        return look

    monkeypatch.setattr("reminders.by_hand.send.last_look", slow)
    with pytest.raises(WrongStateError, match="sent a moment ago"):
        send(reminder, by=owner, said={})
    assert Run.objects.count() == 1


@pytest.mark.usefixtures("few", "noon")
def test_nothing_of_a_large_run_leaves_for_ten_seconds(owner: User) -> None:
    run = sent(send(ready(owner), by=owner, said=confirmed()))
    assert (run.status, run.opens_at) == (RunStatus.QUEUED, NOON + timedelta(seconds=10))
    assert run.may_be_undone
    assert lifecycle.open_window(run).status == RunStatus.QUEUED
    with time_machine.travel(NOON + timedelta(seconds=10), tick=False):
        begun = lifecycle.open_window(run)
    assert (begun.status, begun.may_be_undone) == (RunStatus.RUNNING, False)


@pytest.mark.usefixtures("few", "noon")
def test_a_run_whose_turn_comes_early_still_waits_until_it_can_no_longer_be_undone(owner: User) -> None:
    run = sent(send(ready(owner), by=owner, said=confirmed()))
    Run.objects.filter(pk=run.pk).update(opens_at=None)  # as one that waits for the run before
    started = lifecycle.start_waiting(run)
    assert (started.status, started.opens_at) == (RunStatus.QUEUED, NOON + timedelta(seconds=10))
    assert started.may_be_undone


@pytest.mark.usefixtures("few")
def test_undone_in_time_nothing_is_sent_and_it_can_be_sent_again(owner: User) -> None:
    reminder = ready(owner)
    run = lifecycle.undo(sent(send(reminder, by=owner, said=confirmed())), by=owner)
    assert (run.status, run.canceled_by, counted(run)) == (RunStatus.CANCELED, str(owner), {"skipped": 3})
    add_up(run)
    assert sent(send(reminder, by=owner, said=confirmed())).pk != run.pk


@pytest.mark.usefixtures("few")
def test_it_is_too_late_to_undo_a_run_that_has_begun(owner: User) -> None:
    run = sent(send(ready(owner), by=owner, said=confirmed()))
    with time_machine.travel(timezone.now() + timedelta(seconds=11)):
        lifecycle.open_window(run)
    with pytest.raises(WrongStateError, match="too late to undo it"):
        lifecycle.undo(run, by=owner)
    lifecycle.cancel(run)
    with pytest.raises(WrongStateError, match="nothing left to undo"):
        lifecycle.undo(run, by=owner)


@pytest.mark.usefixtures("few")
def test_strangers_and_readers_undo_nothing(owner: User, stranger: User, reader: User) -> None:
    run = sent(send(ready(owner), by=owner, said=confirmed()))
    for person in (stranger, reader):
        with pytest.raises(PermissionDenied):
            lifecycle.undo(run, by=person)
        with pytest.raises(PermissionDenied):
            send(run.reminder, by=person, said=confirmed())


@pytest.mark.usefixtures("few")
def test_a_button_that_is_pressed_twice_sends_once(owner: User) -> None:
    reminder, key = ready(owner), uuid4()
    first, second = (sent(send(reminder, by=owner, said=confirmed(), key=key)) for _ in range(2))
    assert first == second


@pytest.mark.usefixtures("few")
def test_a_run_before_its_hours_waits_for_them_and_not_for_ten_seconds(owner: User) -> None:
    with time_machine.travel(NOON.replace(hour=4), tick=False):
        reminder = ready(owner, around_the_clock=False, window_start_hour=6, window_end_hour=18)
        run = sent(send(reminder, by=owner, said=confirmed()))
    assert (run.opens_at, run.may_be_undone) == (NOON.replace(hour=6), False)


@pytest.mark.usefixtures("few")
def test_hours_that_end_within_the_ten_seconds_are_over(owner: User) -> None:
    reminder = ready(owner, around_the_clock=False, window_start_hour=6, window_end_hour=18)
    with time_machine.travel(NOON.replace(hour=17, minute=59, second=55), tick=False):
        look = asked(send(reminder, by=owner, said=confirmed()))
    assert "end in a few seconds, at 18:00 UTC" in look.why_not


def after_a_run(owner: User, **values: Any) -> Reminder:
    """Return a reminder of three, of whom one received it, one may have and one did not."""
    reminder = ready(owner, **values)
    run = sent(send(reminder, by=owner, said=confirmed()))
    becomes(run, TargetStatus.SENT)
    becomes(run, TargetStatus.UNCONFIRMED)
    lifecycle.cancel(run)
    return reminder


def test_people_who_received_it_within_a_day_are_named_and_can_be_left_out(owner: User) -> None:
    reminder = after_a_run(owner)
    look = asked(send(reminder, by=owner, said={}))
    assert look.repeat is not None
    doubtful = Run.objects.get().targets.get(status="unconfirmed").recipient
    assert (look.repeat.received, look.repeat.names, look.repeat.left) == (2, [str(doubtful)], True)
    run = sent(send(reminder, by=owner, said={"again": REST}))
    assert counted(run) == {"pending": 1, "skipped": 2}
    assert (run.left_out, set(run.targets.filter(status="skipped").values_list("error", flat=True))) == (
        2,
        {RECEIVED},
    )
    add_up(run)


def test_they_can_get_it_again(owner: User) -> None:
    run = sent(send(after_a_run(owner), by=owner, said={"again": EVERYONE}))
    assert counted(run) == {"pending": 3}


def test_after_a_day_nobody_is_asked(owner: User) -> None:
    reminder = after_a_run(owner)
    Run.objects.update(
        fired_at=timezone.now() - timedelta(days=2), finished_at=timezone.now() - timedelta(days=2)
    )
    assert last_look(reminder, now=timezone.now()).repeat is None


def test_other_people_than_those_of_the_last_run_are_no_repeat(owner: User) -> None:
    reminder = after_a_run(owner)
    reminder.recipients.set(RecipientFactory.create_batch(2, owner=owner))
    assert last_look(reminder, now=timezone.now()).repeat is None


def test_when_everybody_received_it_nothing_is_left_to_send(owner: User) -> None:
    reminder = ready(owner, recipients=1)
    becomes(sent(send(reminder, by=owner, said={})), TargetStatus.SENT)
    Run.objects.update(status="success", finished_at=timezone.now())
    look = asked(send(reminder, by=owner, said={}))
    assert look.repeat is not None
    assert not look.repeat.left
    assert "Everybody received it within the last day." in look.sentences
    with pytest.raises(NothingToSendError, match="its only recipient is left out"):
        send(reminder, by=owner, said={"again": REST})
    assert Run.objects.count() == 1


def test_a_reminder_that_reaches_nobody_is_neither_scheduled_nor_sent(owner: User) -> None:
    people = RecipientFactory.create_batch(2, owner=owner, opted_out=True)
    reminder = ready(owner, recipients=people)
    with pytest.raises(NotReadyError, match="None of the recipients can be reached"):
        scheduling.schedule(reminder)
    assert "None of the recipients" in asked(send(reminder, by=owner, said={"without": "1"})).why_not


def test_nor_is_one_whose_recipients_all_lack_a_value(owner: User) -> None:
    people = RecipientFactory.create_batch(2, owner=owner, fields={"city": ""})
    reminder = ready(owner, recipients=people)
    reminder.parts.update(text="Hello {{ name }} in {{ city }}")
    with pytest.raises(NotReadyError, match=r"No recipient has a value for {{ city }}, so"):
        scheduling.schedule(reminder)
    said = {"without": "1"} | confirmed(0)
    assert "nobody would get it" in asked(send(reminder, by=owner, said=said)).why_not
    people[0].fields = {"city": "Ipoh"}
    people[0].save()
    assert scheduling.schedule(reminder).status == "scheduled"


def test_values_that_are_missing_here_and_there_are_not_said_to_be_missing_for_all(owner: User) -> None:
    people = [RecipientFactory.create(owner=owner, fields={name: "x"}) for name in ("city", "team")]
    reminder = ready(owner, recipients=people)
    reminder.parts.update(text="{{ team }} in {{ city }}")
    with pytest.raises(
        NotReadyError, match=r"Every recipient lacks a value for one of {{ city }}, {{ team }}"
    ):
        scheduling.schedule(reminder)


def test_a_draft_is_not_sent(owner: User) -> None:
    with pytest.raises(WrongStateError, match="Schedule it first"):
        send(ReminderFactory.create(owner=owner, recipients=1), by=owner, said={})
