"""A long run is canceled at once for the person; the tick skips its targets in slices."""

import threading

import pytest
from django.db import connection, transaction

from accounts.models import User
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine import tick as ticking
from delivery.engine.tick import take_back_canceled
from delivery.lifecycle import WrongStateError, steps
from delivery.models import Run
from delivery.run_actions import ACTIONS
from delivery.states import PauseReason, RunStatus, TargetStatus
from reminders.fire import fire
from tests.delivery.stage import Stage, add_up, becomes, counted
from tests.factories import ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AT_ONCE", 1)
    monkeypatch.setattr(ticking, "SLICE", 1)
    monkeypatch.setattr(ticking, "MOST_SLICES", 2)


def running(owner: User, recipients: int = 6) -> Run:
    return fire(
        ReminderFactory.create(owner=owner, recipients=recipients, window_start_hour=0, window_end_hour=24)
    )


def test_a_person_who_cancels_does_not_wait_for_every_target(owner: User) -> None:
    run = lifecycle.cancel(running(owner), by=owner)
    assert (run.status, run.shown_status) == (RunStatus.PAUSED, "canceling")
    assert counted(run) == {"skipped": 1, "pending": 5}
    assert run.summary == f"Canceled by {owner}: nothing more is sent, and 5 messages are being taken back."
    add_up(run)


def test_the_ticks_skip_the_rest_and_then_the_run_is_canceled(owner: User) -> None:
    run = lifecycle.cancel(running(owner))
    seen = []
    for _ in range(3):
        take_back_canceled()
        add_up(run)
        run.refresh_from_db()
        seen.append((run.status, run.pending))
    assert seen == [("paused", 3), ("paused", 1), ("canceled", 0)]
    assert set(run.targets.values_list("status", "error")) == {("skipped", lifecycle.CANCELED)}
    assert not run.run_accounts.filter(open=True).exists()


def test_a_tick_that_dies_in_a_slice_loses_nothing(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lifecycle.cancel(running(owner))
    with monkeypatch.context() as dying:
        dying.setattr(steps, "announce_later", lambda _: 1 / 0)
        take_back_canceled()
    add_up(run)
    assert counted(run) == {"skipped": 1, "pending": 5}
    for _ in range(3):
        take_back_canceled()
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELED


def test_ticks_that_come_while_one_takes_back_leave_it_alone(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, take_back, slices = lifecycle.cancel(running(owner)), lifecycle.take_back, []

    def slow(run_id: int, *, most: int) -> bool:
        slices.append(run_id)
        take_back_canceled()  # the next tick, in another thread of the worker
        return take_back(run_id, most=most)

    monkeypatch.setattr(lifecycle, "take_back", slow)
    take_back_canceled()
    assert slices == [run.pk, run.pk]
    take_back_canceled()
    assert len(slices) == 4, "the next tick goes on"


def test_a_long_run_does_not_keep_a_short_one_waiting(owner: User) -> None:
    long, short = lifecycle.cancel(running(owner)), lifecycle.cancel(running(owner, recipients=2))
    take_back_canceled()
    long.refresh_from_db()
    short.refresh_from_db()
    assert (long.pending, short.status) == (4, RunStatus.CANCELED)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_somebody_else_has_is_left_for_the_next_tick(owner: User) -> None:
    run = lifecycle.cancel(running(owner))

    def tick() -> None:
        take_back_canceled()
        connection.close()

    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        other = threading.Thread(target=tick)
        other.start()
        other.join()
    run.refresh_from_db()
    assert run.pending == 5


def test_nothing_leaves_while_messages_are_taken_back(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=6)
    lifecycle.cancel(run)
    pump.pump(account.pk)
    take_back_canceled()
    pump.pump(account.pk)
    assert stage.received(account) == []
    add_up(run)


def test_nobody_resumes_pauses_or_cancels_it_again(owner: User) -> None:
    run = lifecycle.cancel(running(owner))
    with pytest.raises(WrongStateError, match="was canceled and is about to end"):
        lifecycle.resume(run)
    with pytest.raises(WrongStateError, match="was canceled already: nothing more of it is sent"):
        lifecycle.cancel(run)
    with pytest.raises(WrongStateError, match="is paused"):
        lifecycle.pause(run, reason=PauseReason.OPERATOR)
    assert not [action.verb for action in ACTIONS.values() if action.suits(run)]
    assert not Run.objects.resumable().exists()


def test_to_send_an_unconfirmed_message_again_does_not_bring_the_others_back(owner: User) -> None:
    run = lifecycle.cancel(becomes(running(owner), TargetStatus.UNCONFIRMED))
    target = run.targets.get(status="unconfirmed")
    with pytest.raises(WrongStateError, match="4 of its messages are being taken back"):
        lifecycle.resend(target)
    take_back_canceled()
    take_back_canceled()
    assert counted(lifecycle.resend(target)) == {"pending": 1, "skipped": 5}


def test_its_reminder_may_be_sent_again_meanwhile(owner: User) -> None:
    run = lifecycle.cancel(running(owner))
    assert fire(run.reminder).status == RunStatus.RUNNING


def test_its_reminder_waits_for_messages_that_are_under_way(owner: User) -> None:
    run = running(owner)
    Run.objects.filter(pk=run.pk).update(sending=1, pending=5)
    lifecycle.cancel(run)
    with pytest.raises(WrongStateError, match="still canceling"):
        fire(run.reminder)
