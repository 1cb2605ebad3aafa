"""Decisions about many messages of a run at once."""

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import Account, User
from delivery import lifecycle
from delivery.lifecycle import WrongStateError
from delivery.lifecycle.causes import Cause, groups_of
from delivery.models import Run, RunTarget
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire
from tests.delivery.stage import add_up, becomes, counted
from tests.factories import AccountFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

UNCONFIRMED, FAILED, SENT = TargetStatus.UNCONFIRMED, TargetStatus.FAILED, TargetStatus.SENT


def ended(owner: User, *statuses: TargetStatus, parts: int = 1, errors: tuple[str, ...] = ()) -> Run:
    """Return a settled run whose targets have these statuses, and errors by their place."""
    reminder = ReminderFactory.create(
        owner=owner, recipients=len(statuses), parts=parts, window_start_hour=0, window_end_hour=24
    )
    run = becomes(fire(reminder), *statuses)
    for target, error in zip(run.targets.order_by("pk"), errors, strict=False):
        RunTarget.objects.filter(pk=target.pk).update(error=error)
    lifecycle.settle(run.pk)
    run.refresh_from_db()
    return run


def test_all_unconfirmed_messages_are_marked_as_sent_at_once(owner: User) -> None:
    run = lifecycle.confirm_all(ended(owner, SENT, UNCONFIRMED, UNCONFIRMED), by=owner)
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 3})
    add_up(run)


def test_a_message_that_came_back_meanwhile_counts_as_returned_when_it_is_marked(owner: User) -> None:
    run = ended(owner, SENT, UNCONFIRMED)
    run.targets.filter(status="unconfirmed").update(
        returned_at=timezone.now(), return_kind="permanent", return_reason="No such mailbox"
    )
    run = lifecycle.confirm_all(run, by=owner)
    assert (run.sent, run.returned) == (2, 1)
    add_up(run)


def test_a_message_that_came_back_is_no_longer_returned_when_it_is_sent_again(owner: User) -> None:
    run = ended(owner, SENT, UNCONFIRMED)
    run.targets.filter(status="unconfirmed").update(
        returned_at=timezone.now(), return_kind="permanent", return_reason="No such mailbox"
    )
    run = lifecycle.resend_all(run, by=owner)
    assert (run.returned, run.targets.get(status="pending").returned_at) == (0, None)
    add_up(run)


def test_their_later_parts_still_go_out(owner: User) -> None:
    run = lifecycle.confirm_all(ended(owner, UNCONFIRMED, SENT, parts=2), by=owner)
    assert (run.status, counted(run)) == (RunStatus.RUNNING, {"sent": 1, "pending": 1})
    assert run.targets.get(status="pending").parts_done == 1
    add_up(run)


def test_all_of_them_are_sent_again(owner: User) -> None:
    run = lifecycle.resend_all(ended(owner, UNCONFIRMED, UNCONFIRMED, FAILED), by=owner)
    assert (run.status, counted(run)) == (RunStatus.RUNNING, {"pending": 2, "failed": 1})
    assert (run.finished_at, run.run_accounts.get().open) == (None, True)
    add_up(run)


def test_nobody_decides_twice(owner: User) -> None:
    run = lifecycle.confirm_all(ended(owner, UNCONFIRMED))
    for decide in (lifecycle.confirm_all, lifecycle.resend_all):
        with pytest.raises(WrongStateError, match="No unconfirmed message is left"):
            decide(run)


def test_a_stopped_account_sends_nothing_again(owner: User) -> None:
    run = ended(owner, UNCONFIRMED)
    Account.objects.update(status="flagged")
    with pytest.raises(WrongStateError, match="is flagged"):
        lifecycle.resend_all(run)
    add_up(run)
    assert counted(lifecycle.confirm_all(run)) == {"sent": 1}


def test_errors_are_counted_by_cause_without_the_numbers_that_make_each_its_own(owner: User) -> None:
    errors = ("500 for +60123456789", "500 for +60198765432", "No such number.")
    run = ended(owner, FAILED, FAILED, FAILED, errors=errors)
    account = run.run_accounts.get().account
    assert [(group.cause, group.count) for group in groups_of(run, FAILED)] == [
        (Cause(account_id=account.pk, text="500 for +…"), 2),
        (Cause(account_id=account.pk, text="No such number."), 1),
    ]


def test_one_cause_is_retried_alone(owner: User) -> None:
    run = ended(owner, SENT, FAILED, FAILED, errors=("", "500 for 12345", "No such number."))
    cause = groups_of(run, FAILED)[0].cause
    cause = Cause(account_id=cause.account_id, text="500 for …")
    run = lifecycle.retry_failed(run, by=owner, cause=cause)
    assert counted(run) == {"sent": 1, "pending": 1, "failed": 1}
    assert run.targets.get(status="failed").error == "No such number."
    add_up(run)


def test_a_cause_that_is_gone_retries_nothing(owner: User) -> None:
    run = ended(owner, SENT, FAILED, errors=("", "500"))
    other = AccountFactory.create(owner=owner, flagged=True)
    for cause in (Cause(account_id=other.pk, text="500"), Cause(account_id=other.pk, text="")):
        with pytest.raises(WrongStateError, match="left to retry"):
            lifecycle.retry_failed(run, cause=cause)
    assert Run.objects.get().status == RunStatus.PARTIAL


def test_strangers_and_readers_decide_nothing(owner: User, stranger: User, reader: User) -> None:
    run = ended(owner, UNCONFIRMED)
    for person in (stranger, reader):
        for decide in (lifecycle.confirm_all, lifecycle.resend_all):
            with pytest.raises(PermissionDenied):
                decide(run, by=person)
