"""The decision of a second person, and what it does."""

from datetime import timedelta
from threading import Thread

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from accounts.approvals import requests, strictness
from accounts.approvals.requests import DecidedError
from accounts.models import Approval, TeamMate, User
from activity.models import Notification
from audit.models import Entry
from delivery import lifecycle
from delivery.models import Run
from delivery.states import RunStatus
from reminders import scheduling
from reminders.approvals.asking import waiting_for
from reminders.approvals.deciding import NO_REASON, approve, refuse
from reminders.by_hand.send import send
from reminders.models import Part, Reminder
from tests.factories import ApprovalNumberFactory, RecipientFactory, RunFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

State = Approval.State


@pytest.fixture
def asked(reminder: Reminder, owner: User) -> Approval:
    scheduling.schedule(reminder, by=owner)
    return Approval.objects.waiting().get()


@pytest.fixture
def asked_to_send(by_hand: Reminder, owner: User) -> Approval:
    found = send(by_hand, by=owner, said={})
    assert isinstance(found, Approval)
    return found


def test_an_approval_is_recorded_and_told(asked: Approval, owner: User, sender: User) -> None:
    done = approve(asked, content=asked.content, by=sender)
    assert (done.state, done.decided_by) == (State.APPROVED, sender)
    assert Entry.objects.get(action="approval.approved").actor == sender
    assert Notification.objects.get(title="Approved: Rent").owner == owner


def test_sending_begins_with_the_approval_and_can_be_undone(
    asked_to_send: Approval, sender: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.conf.ASKS_ABOVE", 2)
    settings.UNDO_SECONDS = 10
    run = approve(asked_to_send, content=asked_to_send.content, by=sender).run
    assert run is not None
    assert run.may_be_undone
    assert lifecycle.undo(run, by=sender).status == RunStatus.CANCELED
    assert Entry.objects.get(action="reminder.fired").actor == sender


@pytest.mark.parametrize("kind", ["asked", "asked_to_send"])
def test_nobody_approves_what_they_asked_for(
    kind: str, request: pytest.FixtureRequest, owner: User, staff: User
) -> None:
    found: Approval = request.getfixturevalue(kind)
    for decide in (approve, lambda *a, **k: refuse(*a, reason="No", **k)):
        with pytest.raises(PermissionDenied, match="You asked for this yourself"):
            decide(found, content=found.content, by=owner)
    approve(found, content=found.content, by=staff)


def test_who_edited_last_does_not_approve(asked: Approval, reminder: Reminder, sender: User) -> None:
    Reminder.objects.filter(pk=reminder.pk).update(edited_by=sender)
    with pytest.raises(PermissionDenied, match="last to change"):
        approve(asked, content=asked.content, by=sender)


def test_the_roles_below_send_and_strangers_do_not_approve(
    asked: Approval, writer: User, reader: User, stranger: User
) -> None:
    for person in (writer, reader, stranger):
        with pytest.raises(PermissionDenied):
            approve(asked, content=asked.content, by=person)
    asked.refresh_from_db()
    assert asked.state == State.WAITING


def test_a_removed_member_does_not_approve(asked: Approval, sender: User) -> None:
    TeamMate.objects.filter(mate=sender).delete()
    with pytest.raises(PermissionDenied):
        approve(asked, content=asked.content, by=sender)


def test_what_somebody_asked_for_who_may_not_send_any_more_does_not_leave(
    by_hand: Reminder, owner: User, sender: User, mate: User
) -> None:
    found = send(by_hand, by=sender, said={})
    assert isinstance(found, Approval)
    TeamMate.objects.filter(mate=sender).update(role="write")
    with pytest.raises(DecidedError, match="may not send or change this for this owner any more"):
        approve(found, content=found.content, by=mate)
    assert not Run.objects.exists()
    assert Approval.objects.get().state == State.WAITING


def test_an_edit_between_looking_and_approving_is_refused(
    asked: Approval, asked_to_send: Approval, reminder: Reminder, sender: User
) -> None:
    for found in (asked, asked_to_send):
        Part.objects.filter(reminder=found.reminder).update(text="Other words")
        with pytest.raises(DecidedError, match="changed since you looked"):
            approve(found, content=found.content, by=sender)
    assert not Run.objects.exists()
    assert Approval.objects.waiting().count() == 2


def test_another_fingerprint_than_that_of_the_request_is_refused(asked: Approval, sender: User) -> None:
    with pytest.raises(DecidedError, match="changed since you looked"):
        approve(asked, content="something else", by=sender)


def test_more_recipients_than_it_covers_are_refused(
    asked_to_send: Approval, owner: User, sender: User
) -> None:
    reminder = asked_to_send.reminder
    assert reminder is not None
    tag = TagFactory.create(owner=owner)
    reminder.tags.add(tag)
    again = send(reminder, by=owner, said={})
    assert isinstance(again, Approval)
    RecipientFactory.create(owner=owner, tags=[tag])
    with pytest.raises(DecidedError, match="changed since you looked"):
        approve(again, content=again.content, by=sender)
    assert not Run.objects.exists()


def test_approving_twice_is_told(asked: Approval, sender: User, mate: User) -> None:
    approve(asked, content=asked.content, by=sender)
    with pytest.raises(DecidedError, match="sender has approved this already"):
        approve(asked, content=asked.content, by=mate)


def test_after_its_time_nobody_approves(asked_to_send: Approval, sender: User) -> None:
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(DecidedError, match="Nobody decided in time"):
        approve(asked_to_send, content=asked_to_send.content, by=sender)


def test_a_refused_reminder_is_a_draft_with_the_reason(
    asked: Approval, reminder: Reminder, owner: User, sender: User
) -> None:
    done = refuse(asked, content=asked.content, reason=" Wrong \n date ", by=sender)
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at) == (Reminder.Status.DRAFT, None)
    assert done.reason == "Wrong date"
    told = Notification.objects.get(title="Not approved: Rent")
    assert (told.owner, told.body) == (owner, "sender: Wrong date")


def test_one_that_ran_before_is_switched_off(asked: Approval, reminder: Reminder, sender: User) -> None:
    RunFactory.create(reminder=reminder)
    refuse(asked, content=asked.content, reason="Wrong date", by=sender)
    reminder.refresh_from_db()
    assert reminder.status == Reminder.Status.OFF


def test_a_refusal_needs_a_reason(asked: Approval, sender: User) -> None:
    with pytest.raises(DecidedError, match=NO_REASON):
        refuse(asked, content=asked.content, reason="  ", by=sender)


def test_a_request_can_be_taken_back(asked: Approval, owner: User, sender: User, stranger: User) -> None:
    with pytest.raises(PermissionDenied):
        requests.withdraw(asked, by=stranger)
    requests.withdraw(asked, by=owner)
    with pytest.raises(DecidedError):
        approve(asked, content=asked.content, by=sender)


def test_who_schedules_it_again_is_the_one_who_asks(
    asked: Approval, reminder: Reminder, owner: User, sender: User
) -> None:
    """Two people have wanted it then, and the first one may approve."""
    scheduling.schedule(reminder, by=sender)
    again = waiting_for(reminder, Approval.Kind.REMINDER)
    assert again is not None
    assert again.asked_by == sender
    approve(again, content=again.content, by=owner)


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_decide_at_once_one_does(
    reminder: Reminder, owner: User, sender: User, mate: User
) -> None:
    with transaction.atomic():
        scheduling.schedule(reminder, by=owner)
    found = Approval.objects.waiting().get()
    done: list[str] = []

    def decide(person: User) -> None:
        try:
            approve(found, content=found.content, by=person)
            done.append("approved")
        except DecidedError:
            done.append("too late")
        finally:
            connection.close()

    threads = [Thread(target=decide, args=[person]) for person in (sender, mate)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == ["approved", "too late"]
    assert Entry.objects.filter(action="approval.approved").count() == 1


def test_a_looser_number_needs_who_asked_to_manage_still(owner: User, sender: User, mate: User) -> None:
    ApprovalNumberFactory.create(owner=owner, above=2)
    TeamMate.objects.filter(mate=mate).update(role="manage")
    found = strictness.set_number(owner, None, by=mate)
    assert found is not None
    TeamMate.objects.filter(mate=mate).update(role="send")
    with pytest.raises(DecidedError, match="may not send or change this for this owner any more"):
        approve(found, content=found.content, by=sender)
    assert strictness.own_number(owner) == 2
