"""Approvals over the API, from the firing to the run; and from the terminal."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Account, Approval, User
from delivery.models import Run
from reminders.models import Reminder
from tests.api.program import Program, problem_of
from tests.factories import (
    AccountFactory,
    ApprovalNumberFactory,
    QueueFactory,
    RecipientFactory,
    ReminderFactory,
)


@pytest.fixture
def reminder(owner: User, sender: User) -> Reminder:
    ApprovalNumberFactory.create(owner=owner, above=2)
    return ReminderFactory.create(
        owner=owner,
        name="Fair",
        recipients=3,
        scheduled=True,
        by_hand=True,
        around_the_clock=True,
        fire_at=None,
    )


def test_a_firing_waits_and_another_program_approves_it(
    program: Program, reminder: Reminder, sender: User
) -> None:
    fired = program.post(f"/reminders/{reminder.pk}/fire", {})
    assert (fired["run"], fired["dry_run"], fired["waiting_for"]) == (None, False, "approval")
    at = f"/approvals/{fired['approval']}"
    assert program.get(at)["may_decide"] is False
    own = program.ask("POST", f"{at}/approve", {"content": program.get(at)["content"]})
    assert own.status_code == 403
    other = Program(sender)
    (waiting,) = other.get("/approvals?state=waiting")["items"]
    assert waiting["may_decide"]
    wrong = problem_of(other.ask("POST", f"{at}/approve", {"content": "else"}))
    assert (wrong["status"], wrong["type"]) == (409, "wrong-state")
    done = other.post(f"{at}/approve", {"content": waiting["content"]})
    assert (done["state"], done["decided_by"], done["run"]) == ("approved", "sender", Run.objects.get().pk)


def test_a_refusal_needs_a_reason(program: Program, reminder: Reminder, sender: User) -> None:
    at = f"/approvals/{program.post(f'/reminders/{reminder.pk}/fire', {})['approval']}"
    content = program.get(at)["content"]
    other = Program(sender)
    assert other.ask("POST", f"{at}/refuse", {"content": content}).status_code == 422
    assert other.post(f"{at}/refuse", {"content": content, "reason": "Wrong date"})["reason"] == "Wrong date"


def test_it_can_be_taken_back(program: Program, reminder: Reminder) -> None:
    at = f"/approvals/{program.post(f'/reminders/{reminder.pk}/fire', {})['approval']}"
    assert program.post(f"{at}/withdraw")["state"] == "withdrawn"


def test_a_scheduled_reminder_names_its_request(program: Program, owner: User, sender: User) -> None:
    ApprovalNumberFactory.create(owner=owner, above=2)
    soon = ReminderFactory.create(owner=owner, recipients=3, scheduled=True, around_the_clock=True)
    assert program.post(f"/reminders/{soon.pk}/schedule")["approval"] == Approval.objects.get().pk


def test_a_single_message_from_a_marked_account_is_refused(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner, needs_approval=True)
    body = {"accounts": [account.pk], "recipient": RecipientFactory.create(owner=owner).pk, "text": "Hi"}
    assert "needs approval" in problem_of(program.ask("POST", "/messages", body))["detail"]


def test_a_queue_asks_and_takes_no_more_before(program: Program, owner: User, sender: User) -> None:
    queue = QueueFactory.create(owner=owner)
    Account.objects.update(needs_approval=True)
    item = {"items": [{"own_id": "1", "address": "+60127000001", "text": "Hi"}]}
    assert program.ask("POST", f"/queues/{queue.pk}/items", item).status_code == 409
    program.post(f"/queues/{queue.pk}/ask-approval")
    asked = Approval.objects.get()
    Program(sender).post(f"/approvals/{asked.pk}/approve", {"content": asked.content})
    assert program.ask("POST", f"/queues/{queue.pk}/items", item).status_code == 200


def said(*arguments: str | int, **options: object) -> str:
    out = StringIO()
    call_command("decide_approval", *arguments, stdout=out, **options)
    return out.getvalue()


def test_the_terminal_lists_and_decides(reminder: Reminder, owner: User, sender: User) -> None:
    assert said() == "Nothing waits for approval.\n"
    out = StringIO()
    call_command("fire_reminder", reminder.pk, user="owner", stdout=out)
    assert "waits for approval" in out.getvalue()
    asked = Approval.objects.get()
    assert "Fair" in said()
    assert json.loads(said(json=True))["waiting"][0]["content"] == asked.content
    with pytest.raises(CommandError, match="--as NAME"):
        said(asked.pk, approve=asked.content)
    with pytest.raises(CommandError, match="You asked for this yourself"):
        said(asked.pk, approve=asked.content, user="owner")
    assert said(asked.pk, approve=asked.content, user="sender") == "Approved: Fair.\n"
    assert Run.objects.exists()


def test_an_unknown_request_is_exit_code_2(owner: User) -> None:
    with pytest.raises(CommandError) as error:
        said(404)
    assert error.value.returncode == 2
