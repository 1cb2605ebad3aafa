"""Requests whose recipients grow while they wait: they can still be decided, and are never kept for ever."""

from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.approvals.requests import DecidedError
from accounts.models import Approval, Tag, User
from delivery.models import Run
from reminders import due, scheduling
from reminders.approvals.asking import held_conversations
from reminders.approvals.deciding import approve
from reminders.by_hand.send import send
from reminders.drafts import locked_to_edit
from reminders.models import Reminder
from tests.factories import FollowUpStepFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis", "traveling")]

State = Approval.State


@pytest.fixture
def tag(team: User) -> Tag:
    found = TagFactory.create(owner=team)
    RecipientFactory.create_batch(10, owner=team, tags=[found])
    return found


@pytest.fixture
def daily(team: User, tag: Tag) -> Reminder:
    found = ReminderFactory.create(
        owner=team, name="Daily", tags=[tag], repeating=True, scheduled=True, around_the_clock=True
    )
    return scheduling.schedule(found, by=team)


@pytest.fixture
def fair(by_hand: Reminder, tag: Tag) -> Reminder:
    by_hand.tags.add(tag)
    return by_hand


def grow(tag: Tag, by: int = 5) -> None:
    RecipientFactory.create_batch(by, owner=tag.owner, tags=[tag])


def test_the_page_decides_for_the_number_that_it_shows(
    daily: Reminder, tag: Tag, sender: User, client: Client
) -> None:
    asked = Approval.objects.waiting().get()
    grow(tag)
    client.force_login(sender)
    page = client.get(f"/approvals/{asked.pk}/")
    assert "15 people" in page.content.decode()
    assert 'name="recipients" value="15"' in page.content.decode()
    client.post(f"/approvals/{asked.pk}/approve/", {"content": asked.content, "recipients": "15"})
    asked.refresh_from_db()
    assert (asked.state, asked.recipients, asked.covers) == (State.APPROVED, 15, 16)


@pytest.mark.parametrize("seen", ["", "0", "-3", "x", "9" * 30, "\u00b2"])
def test_a_number_that_is_none_is_not_taken(
    daily: Reminder, tag: Tag, sender: User, client: Client, seen: str
) -> None:
    asked = Approval.objects.waiting().get()
    client.force_login(sender)
    client.post(f"/approvals/{asked.pk}/approve/", {"content": asked.content, "recipients": seen})
    asked.refresh_from_db()
    assert (asked.state, asked.covers) == (State.APPROVED, 11)


def test_more_than_were_seen_are_refused(daily: Reminder, tag: Tag, sender: User) -> None:
    asked = Approval.objects.waiting().get()
    grow(tag, by=20)
    with pytest.raises(DecidedError, match="changed since you looked"):
        approve(asked, content=asked.content, by=sender, seen=15)
    asked.refresh_from_db()
    assert (asked.state, asked.covers) == (State.WAITING, 11)


def test_a_moment_that_passes_asks_for_the_number_of_today(daily: Reminder, tag: Tag, owner: User) -> None:
    first = Approval.objects.waiting().get()
    grow(tag)
    assert daily.next_fire_at is not None
    with time_machine.travel(daily.next_fire_at + timedelta(seconds=1), tick=False):
        due.tick()
    again = Approval.objects.waiting().get()
    assert again != first
    assert (again.asked_by, again.recipients) == (owner, 15)


def test_sending_again_asks_for_the_number_of_today(
    fair: Reminder, tag: Tag, owner: User, sender: User
) -> None:
    first = send(fair, by=owner, said={})
    grow(tag)
    again = send(fair, by=owner, said={})
    assert isinstance(again, Approval)
    assert again != first
    approve(again, content=again.content, by=sender)
    assert Run.objects.get().total == 18


def test_a_request_whose_time_is_over_is_not_used_again(fair: Reminder, owner: User) -> None:
    first = send(fair, by=owner, said={})
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert send(fair, by=owner, said={}) != first


def test_changed_follow_ups_of_a_reminder_that_ran_can_be_approved(
    fair: Reminder,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    step = FollowUpStepFactory.create(reminder=fair)
    first = send(fair, by=owner, said={})
    assert isinstance(first, Approval)
    approve(first, content=first.content, by=sender)
    with django_capture_on_commit_callbacks(execute=True):
        locked_to_edit(fair, by=owner)
        step.text = "Other words"
        step.save()
    asked = Approval.objects.waiting().get()
    assert asked.recipients == 13
    approve(asked, content=asked.content, by=sender)
    assert held_conversations([fair.pk]) == set()


def test_changed_follow_ups_are_asked_about_also_below_the_number(
    daily: Reminder,
    tag: Tag,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """They go to those whom the earlier runs reached, however few get the next one."""
    step = FollowUpStepFactory.create(reminder=daily)
    scheduling.schedule(daily, by=owner)
    asked = Approval.objects.waiting().get()
    approve(asked, content=asked.content, by=sender)
    with django_capture_on_commit_callbacks(execute=True):
        locked_to_edit(daily, by=owner)
        tag.recipients.set(list(tag.recipients.all()[:1]))
        step.text = "Other words"
        step.save()
    assert held_conversations([daily.pk]) == {daily.pk}
    again = Approval.objects.waiting().get()
    assert "follow-ups" in again.why
    approve(again, content=again.content, by=sender)
    assert held_conversations([daily.pk]) == set()
