"""The second message: at once, once, and never without a reply in time (SPEC C3)."""

from datetime import UTC, datetime, timedelta

import hypothesis
import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from pytest_django.asserts import assertContains, assertNotContains

from delivery.models import Run
from reminders.models import Reminder
from tests.factories import AttemptFactory, RunFactory, RunTargetFactory
from tests.reminders.conversations.conversation import reply, sent, sent_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
Kind = Run.Kind


def seconds() -> list[Run]:
    return list(Run.objects.filter(kind=Kind.SECOND).order_by("pk"))


def test_a_reply_brings_it_from_the_same_account_ahead_of_all_other_work() -> None:
    target = sent(second=2, priority=7)
    reply(target)
    (run,) = seconds()
    assert [part["text"] for part in run.parts] == ["Second 0, {{ name }}", "Second 1, {{ name }}"]
    assert (run.status, run.total, run.pending) == ("running", 1, 1)
    assert run.priority > target.run.priority
    assert run.first_target == target
    made = run.targets.get()
    assert (made.recipient_id, made.account_id) == (target.recipient_id, target.account_id)
    assert list(run.run_accounts.values_list("account_id", "open")) == [(target.account_id, True)]


def test_a_reminder_without_one_sends_none() -> None:
    reply(sent(second=0))
    assert seconds() == []


def test_a_second_reply_and_the_same_reply_again_bring_no_other() -> None:
    target = sent()
    reply(target, event="one")
    reply(target, event="one")
    reply(target, "And another thing")
    assert len(seconds()) == 1


def test_a_new_first_message_brings_a_new_second() -> None:
    now = timezone.now()
    target = sent(at=now - timedelta(hours=2))
    reply(target, at=now - timedelta(hours=1))
    again = sent_of(target.run.reminder, recipient=target.recipient, account=target.account, at=now)
    reply(again)
    assert [run.first_target for run in seconds()] == [target, again]


@pytest.mark.parametrize(("hours", "number"), [(0, 1), (23.9, 1), (24, 1), (24.1, 0), (-0.1, 0)])
def test_only_a_reply_within_a_day_of_the_first_brings_it(hours: float, number: int) -> None:
    with time_machine.travel(NOON, tick=False):
        target = sent(at=NOON)
    with time_machine.travel(NOON + timedelta(hours=25), tick=False):
        reply(target, at=NOON + timedelta(hours=hours))
    assert len(seconds()) == number


def test_the_setting_and_the_reminder_say_how_long_a_reply_counts(settings: Settings) -> None:
    settings.SECOND_MESSAGE_HOURS = 1
    late = timezone.now() - timedelta(hours=2)
    reply(sent(at=late))
    assert seconds() == []
    reply(sent(at=late, second_message_hours=3))
    assert len(seconds()) == 1


def test_a_reply_at_night_gets_it_when_the_window_opens() -> None:
    night = NOON.replace(hour=23)
    with time_machine.travel(night, tick=False):
        reply(sent(at=night - timedelta(hours=8), window_start_hour=9, window_end_hour=18, zone="UTC"))
    (run,) = seconds()
    assert (run.status, run.opens_at) == ("queued", NOON.replace(day=3, hour=9))
    assert run.resumes_by_itself


@pytest.mark.parametrize("state", [{"archived_at": NOON}, {"status": Reminder.Status.OFF}])
def test_a_reminder_that_somebody_stopped_says_nothing_more(state: dict[str, object]) -> None:
    target = sent()
    Reminder.objects.update(**state)
    reply(target)
    assert seconds() == []


def test_who_is_blocked_gets_none() -> None:
    target = sent()
    target.recipient.blocked_at = NOON
    target.recipient.save()
    reply(target)
    assert seconds() == []


def test_a_reply_that_overtakes_the_landing_of_its_message_waits_for_it() -> None:
    target = sent()
    first = RunTargetFactory.create(
        run=RunFactory.create(reminder=target.run.reminder, sending=1), begun=True, account=target.account
    )
    said = reply(first)
    assert said.handled_at is None
    assert seconds() == []
    type(first).objects.filter(pk=first.pk).update(
        status="sent", begun_at=None, claimed_at=None, settled_at=said.at
    )
    assert reply(first, event=said.event_id).handled_at is not None
    assert [run.first_target for run in seconds()] == [first]


def test_a_reply_that_overtakes_a_slow_service_counts_from_when_the_message_left() -> None:
    landed_at = timezone.now()
    target = sent(at=landed_at)
    AttemptFactory.create(target=target, at=landed_at - timedelta(seconds=20))
    said = reply(target, at=landed_at - timedelta(seconds=10))
    assert said.target == target
    assert [run.first_target for run in seconds()] == [target]


def test_a_reply_before_the_message_left_is_not_an_answer_to_it() -> None:
    landed_at = timezone.now()
    target = sent(at=landed_at)
    AttemptFactory.create(target=target, at=landed_at - timedelta(seconds=20))
    assert reply(target, at=landed_at - timedelta(seconds=30)).target is None
    assert seconds() == []


@pytest.mark.parametrize("between", [{"claimed": True}, {}], ids=["in a moment", "when the window opens"])
def test_a_reply_between_two_parts_waits_for_the_last_one(between: dict[str, bool]) -> None:
    target = sent()
    run = RunFactory.create(reminder=target.run.reminder, sending=1)
    first = RunTargetFactory.create(run=run, account=target.account, parts_done=1, **between)
    AttemptFactory.create(target=first)
    said = reply(first)
    assert said.handled_at is None
    changed = type(first).objects.filter(pk=first.pk)
    changed.update(status="sending", fence=1, claimed_at=said.at)
    changed.update(status="sent", parts_done=2, claimed_at=None, settled_at=said.at + timedelta(minutes=5))
    assert reply(first, event=said.event_id).handled_at is not None
    assert [run.first_target for run in seconds()] == [first]


def test_the_database_refuses_a_second_one_for_the_same_first_message() -> None:
    target = sent()
    reply(target)
    with pytest.raises(IntegrityError), transaction.atomic():
        RunFactory.create(reminder=target.run.reminder, kind=Kind.SECOND, first_target=target)


def test_an_invitation_is_followed_by_a_message() -> None:
    target = sent(action="connection_request")
    reply(target)
    assert [run.action for run in seconds()] == ["message"]


@given(st.one_of(st.sampled_from([-1, 0, 1, 86_399, 86_400, 86_401]), st.integers(-(10**6), 10**6)))
@hypothesis.settings(max_examples=25, deadline=None)
def test_a_reply_is_in_time_from_the_first_message_to_a_day_after_it(offset: int) -> None:
    """Services tell whole seconds: a reply of the same second came after it."""
    Run.objects.filter(kind=Kind.SECOND).delete()
    with time_machine.travel(NOON + timedelta(days=30), tick=False):
        target = sent(at=NOON + timedelta(milliseconds=700))
        reply(target, at=NOON + timedelta(seconds=offset))
    assert len(seconds()) == (0 <= offset <= 86_400)


def test_second_messages_do_not_crowd_out_the_runs_of_their_reminder(client: Client) -> None:
    target = sent()
    client.force_login(target.run.owner)
    for number in range(8):
        RunFactory.create(reminder=target.run.reminder, kind=Kind.SECOND, name=f"Second {number}")
    paused = RunFactory.create(reminder=target.run.reminder, paused=True, sent=1, pending=1)
    for page in (f"/reminders/{target.run.reminder_id}/", "/"):
        shown = client.get(page)
        assertContains(shown, f"/runs/{paused.pk}/")
        assertNotContains(shown, "Second 7")
    assertContains(client.get(f"/reminders/{target.run.reminder_id}/"), "And 8 second messages")
