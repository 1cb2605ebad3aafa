"""Asking for the approval of a reminder: when it is scheduled, sent by hand, and edited after that."""

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.approvals.requests import expire_all
from accounts.models import Account, Approval, User
from activity.models import Notification
from audit.models import Entry
from delivery.models import Run
from reminders import audience, drafts, scheduling
from reminders.approvals.asking import ask_to_schedule, held_conversations, to_show, waiting_for
from reminders.approvals.content import content_of
from reminders.approvals.deciding import approve
from reminders.by_hand.send import send
from reminders.drafts import locked_to_edit
from reminders.fire import fire
from reminders.models import Part, Reminder
from tests.factories import (
    AccountFactory,
    ApprovalFactory,
    FollowUpStepFactory,
    PartFactory,
    RecipientFactory,
    ReminderAccountFactory,
    ReminderFactory,
    TagFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

Kind, State = Approval.Kind, Approval.State


def waiting(reminder: Reminder, kind: Approval.Kind = Kind.REMINDER) -> Approval:
    found = waiting_for(reminder, kind)
    assert found is not None
    return found


def test_scheduling_asks_above_the_number(reminder: Reminder, owner: User, sender: User) -> None:
    scheduling.schedule(reminder, by=owner)
    asked = waiting(reminder)
    assert (asked.asked_by, asked.recipients, asked.covers) == (owner, 3, 3)
    assert "more than 2 recipients" in asked.why
    assert Notification.objects.get(kind="approval").owner == sender
    assert Entry.objects.get(action="approval.asked").actor == owner


def test_at_the_number_nobody_is_asked(team: User) -> None:
    few = ReminderFactory.create(owner=team, recipients=2, scheduled=True, around_the_clock=True)
    scheduling.schedule(few, by=team)
    assert not Approval.objects.exists()


def test_who_may_not_get_it_is_not_counted(team: User) -> None:
    people = [
        *RecipientFactory.create_batch(2, owner=team),
        RecipientFactory.create(owner=team, opted_out=True),
    ]
    few = ReminderFactory.create(owner=team, recipients=people, scheduled=True, around_the_clock=True)
    scheduling.schedule(few, by=team)
    assert not Approval.objects.exists()


def test_a_marked_account_asks_for_one_recipient(owner: User, sender: User) -> None:
    account = AccountFactory.create(owner=owner, needs_approval=True, name="Office")
    one = ReminderFactory.create(
        owner=owner, accounts=[account], recipients=1, scheduled=True, around_the_clock=True
    )
    scheduling.schedule(one, by=owner)
    assert "Office" in waiting(one).why


def test_a_manual_reminder_is_asked_about_when_it_is_sent(by_hand: Reminder, owner: User) -> None:
    scheduling.schedule(by_hand, by=owner)
    assert not Approval.objects.exists()
    asked = send(by_hand, by=owner, said={"again": "rest"})
    assert isinstance(asked, Approval)
    assert asked.said == {"again": "rest"}
    assert asked.expires_at is not None
    assert not Run.objects.exists()


def test_pressing_send_twice_is_one_request(by_hand: Reminder, owner: User) -> None:
    assert send(by_hand, by=owner, said={}) == send(by_hand, by=owner, said={})
    assert Notification.objects.filter(kind="approval").count() == 1


def test_with_nobody_else_in_the_team_staff_are_asked(reminder: Reminder, owner: User, staff: User) -> None:
    owner.mates.all().delete()
    scheduling.schedule(reminder, by=owner)
    assert Notification.objects.get(kind="approval").owner == staff


def test_who_edited_last_is_not_asked(reminder: Reminder, owner: User, sender: User, mate: User) -> None:
    Reminder.objects.filter(pk=reminder.pk).update(edited_by=sender)
    scheduling.schedule(reminder, by=owner)
    assert [each.owner for each in Notification.objects.filter(kind="approval")] == [mate]


def _text(reminder: Reminder) -> None:
    Part.objects.filter(reminder=reminder).update(text="Other words")


def _wording(reminder: Reminder) -> None:
    Part.objects.filter(reminder=reminder).update(other_wordings=["Hi"])


def _second(reminder: Reminder) -> None:
    PartFactory.create(reminder=reminder, second=True)


def _follow_up(reminder: Reminder) -> None:
    FollowUpStepFactory.create(reminder=reminder)


def _account(reminder: Reminder) -> None:
    ReminderAccountFactory.create(reminder=reminder, position=1)


def _recipient(reminder: Reminder) -> None:
    reminder.recipients.add(RecipientFactory.create(owner=reminder.owner))


def _exchange(reminder: Reminder) -> None:
    first = reminder.recipients.first()
    assert first is not None
    reminder.recipients.remove(first)
    reminder.recipients.add(RecipientFactory.create(owner=reminder.owner))


def _tag(reminder: Reminder) -> None:
    reminder.tags.add(TagFactory.create(owner=reminder.owner))


def _hours(reminder: Reminder) -> None:
    Reminder.objects.filter(pk=reminder.pk).update(window_end_hour=20)


def _time(reminder: Reminder) -> None:
    Reminder.objects.filter(pk=reminder.pk).update(fire_at=timezone.now() + timedelta(hours=2))


CHANGES = [_text, _wording, _second, _follow_up, _account, _recipient, _exchange, _tag, _hours, _time]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_of_what_leaves_changes_the_fingerprint(
    reminder: Reminder, change: Callable[[Reminder], None]
) -> None:
    before = content_of(Reminder.objects.get(pk=reminder.pk))
    assert content_of(Reminder.objects.get(pk=reminder.pk)) == before
    change(reminder)
    assert content_of(Reminder.objects.get(pk=reminder.pk)) != before


def test_who_has_a_tag_is_not_in_the_fingerprint(reminder: Reminder) -> None:
    tag = TagFactory.create(owner=reminder.owner)
    reminder.tags.add(tag)
    before = content_of(reminder)
    RecipientFactory.create(owner=reminder.owner, tags=[tag])
    assert content_of(reminder) == before


def test_an_edit_after_the_approval_asks_again_in_the_name_of_who_edited(
    reminder: Reminder,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    scheduling.schedule(reminder, by=owner)
    approve(first := waiting(reminder), content=first.content, by=sender)
    with django_capture_on_commit_callbacks(execute=True):
        audience.choose(
            reminder, owner.recipients.filter(pk=RecipientFactory.create(owner=owner).pk), by=sender
        )
    again = waiting(reminder)
    assert (again.asked_by, again.recipients) == (sender, 4)
    reminder.refresh_from_db()
    assert reminder.edited_by == sender


def test_an_edit_back_to_what_was_approved_needs_nobody(
    reminder: Reminder, owner: User, sender: User
) -> None:
    scheduling.schedule(reminder, by=owner)
    approve(first := waiting(reminder), content=first.content, by=sender)
    tag = TagFactory.create(owner=owner)
    reminder.tags.add(tag)
    assert ask_to_schedule(reminder, by=owner) is not None
    reminder.tags.remove(tag)
    assert ask_to_schedule(reminder, by=owner) is None
    assert not Approval.objects.waiting().exists()


def test_looking_without_changing_leaves_the_request_to_who_asked(
    reminder: Reminder,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    scheduling.schedule(reminder, by=owner)
    with django_capture_on_commit_callbacks(execute=True):
        locked_to_edit(reminder, by=sender)
    assert waiting(reminder).asked_by == owner


def test_switching_off_takes_the_request_back(reminder: Reminder, owner: User) -> None:
    scheduling.schedule(reminder, by=owner)
    scheduling.switch_off(reminder, by=owner)
    assert Approval.objects.get().state == State.WITHDRAWN


def test_a_duplicate_has_no_approval(reminder: Reminder, owner: User, sender: User) -> None:
    scheduling.schedule(reminder, by=owner)
    approve(first := waiting(reminder), content=first.content, by=sender)
    copy = drafts.duplicate(reminder, by=owner)
    copy.fire_at = reminder.fire_at
    copy.save()
    scheduling.schedule(copy, by=owner)
    assert waiting(copy).asked_by == owner


def test_follow_ups_that_were_edited_since_are_held(reminder: Reminder) -> None:
    step = FollowUpStepFactory.create(reminder=reminder)
    ApprovalFactory.create(
        owner=reminder.owner, kind=Kind.SEND, reminder=reminder, approved=True, content=content_of(reminder)
    )
    assert held_conversations([reminder.pk]) == set()
    step.text = "Buy now"
    step.save()
    assert held_conversations([reminder.pk]) == {reminder.pk}


@pytest.mark.parametrize("change", [_recipient, _tag, _time, _text])
def test_follow_ups_go_on_while_another_part_of_the_reminder_waits(
    reminder: Reminder, change: Callable[[Reminder], None]
) -> None:
    """Follow-ups of earlier runs say what was approved, whoever gets the next run and whenever."""
    FollowUpStepFactory.create(reminder=reminder)
    ApprovalFactory.create(
        owner=reminder.owner, reminder=reminder, approved=True, content=content_of(reminder), kind=Kind.SEND
    )
    change(reminder)
    assert held_conversations([reminder.pk]) == set()


@pytest.mark.parametrize("change", [_second, _follow_up, _account, _hours])
def test_what_reaches_follow_ups_holds_them(reminder: Reminder, change: Callable[[Reminder], None]) -> None:
    FollowUpStepFactory.create(reminder=reminder, position=5)
    ApprovalFactory.create(
        owner=reminder.owner, reminder=reminder, approved=True, content=content_of(reminder), kind=Kind.SEND
    )
    change(reminder)
    assert held_conversations([reminder.pk]) == {reminder.pk}


def test_a_reply_does_not_read_the_chosen_recipients(reminder: Reminder) -> None:
    """There may be a million, and each reply to a second message asks."""
    FollowUpStepFactory.create(reminder=reminder)
    ApprovalFactory.create(owner=reminder.owner, reminder=reminder, approved=True, kind=Kind.SEND)
    with CaptureQueriesContext(connection) as asked:
        assert held_conversations([reminder.pk]) == {reminder.pk}
    assert not any("reminders_reminder_recipients" in query["sql"] for query in asked)


def test_what_never_needed_an_approval_is_never_held(reminder: Reminder) -> None:
    FollowUpStepFactory.create(reminder=reminder)
    assert held_conversations([reminder.pk]) == set()


def test_a_request_that_nobody_decided_ends_and_is_told(by_hand: Reminder, owner: User, sender: User) -> None:
    asked = send(by_hand, by=owner, said={})
    assert isinstance(asked, Approval)
    assert expire_all(timezone.now()) == 0
    assert expire_all(timezone.now() + timedelta(days=1, minutes=1)) == 1
    asked.refresh_from_db()
    assert asked.state == State.EXPIRED
    told = Notification.objects.filter(title__startswith="Not approved in time")
    assert {each.owner for each in told} == {owner, sender}
    assert to_show(by_hand) == [asked]


def test_the_column_of_accounts_is_off_at_first(owner: User) -> None:
    assert not Account.objects.get(pk=AccountFactory.create(owner=owner).pk).needs_approval


def test_who_asked_to_send_is_told_when_somebody_changes_it(
    by_hand: Reminder,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    asked = send(by_hand, by=owner, said={})
    assert isinstance(asked, Approval)
    with django_capture_on_commit_callbacks(execute=True):
        locked_to_edit(by_hand, by=sender)
        _text(by_hand)
    asked.refresh_from_db()
    assert asked.state == State.WITHDRAWN
    told = Notification.objects.get(title="Not sent: Fair")
    assert (told.owner, told.body) == (
        owner,
        "sender changed it while it waited for approval. Send it again, if it still matters.",
    )


def test_who_asked_is_told_when_somebody_switches_it_off(
    by_hand: Reminder, owner: User, sender: User
) -> None:
    asked = send(by_hand, by=owner, said={})
    scheduling.switch_off(by_hand, by=sender)
    assert Notification.objects.get(title="Not sent: Fair").body.startswith("sender switched it off")
    assert isinstance(asked, Approval)
    asked.refresh_from_db()
    assert asked.state == State.WITHDRAWN


def test_nobody_is_told_what_they_did_themselves(by_hand: Reminder, owner: User) -> None:
    send(by_hand, by=owner, said={})
    scheduling.switch_off(by_hand, by=owner)
    assert not Notification.objects.filter(owner=owner).exists()


@pytest.mark.django_db(transaction=True)
def test_nothing_is_added_between_the_question_and_the_run(
    team: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two sessions, one person could send to two and add a thousand meanwhile."""
    few = ReminderFactory.create(
        owner=team, recipients=2, scheduled=True, by_hand=True, around_the_clock=True, fire_at=None
    )
    found: list[bool] = []

    def edit() -> None:
        rows = Reminder.objects.select_for_update(no_key=True, skip_locked=True)
        with transaction.atomic():
            found.append(rows.filter(pk=few.pk).exists())
        connection.close()

    def fired(*given: Any, **said: Any) -> Run:
        other = Thread(target=edit)
        other.start()
        other.join()
        return fire(*given, **said)

    monkeypatch.setattr("reminders.by_hand.send.fire", fired)
    assert isinstance(send(few, by=team, said={}), Run)
    assert found == [False]
