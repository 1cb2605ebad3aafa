"""A run's life: each move, who may make it, and from where it is refused."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone

from accounts.models import Account, User
from activity.models import Notification
from delivery import lifecycle
from delivery.engine.tick import tick
from delivery.fanout import make_run
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.run_actions import ACTIONS, Question, Report, perform
from delivery.states import PauseReason, RunStatus, TargetStatus
from reminders.fire import fire, freeze, load_for_freezing
from tests.delivery.stage import abandon, add_up, becomes, counted, status_of
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

KL = ZoneInfo("Asia/Kuala_Lumpur")
NOON = datetime(2026, 3, 11, 12, tzinfo=KL)
END = datetime(2026, 3, 11, 18, tzinfo=KL)
NEXT_DAY = datetime(2026, 3, 12, 6, tzinfo=KL)

pause = partial(lifecycle.pause, reason=PauseReason.OPERATOR)
RUN_MOVES: dict[str, Callable[..., Run]] = {
    "pause": pause,
    "resume": lifecycle.resume,
    "cancel": lifecycle.cancel,
    "retry_failed": lifecycle.retry_failed,
    "archive": lifecycle.archive,
}


def running(owner: User, recipients: int = 3, **values: Any) -> Run:
    """A run inside its window, with a window around the clock unless it says otherwise."""
    values = {"window_start_hour": 0, "window_end_hour": 24} | values
    return fire(ReminderFactory.create(owner=owner, recipients=recipients, **values))


def daytime(owner: User, recipients: int = 3, **values: Any) -> Run:
    """A run of Kuala Lumpur's day, from 6 to 18."""
    return running(
        owner, recipients, zone="Asia/Kuala_Lumpur", window_start_hour=6, window_end_hour=18, **values
    )


def ended(owner: User, *statuses: TargetStatus) -> Run:
    run = becomes(running(owner, len(statuses)), *statuses)
    lifecycle.settle(run.pk)
    run.refresh_from_db()
    return run


def before_the_window(owner: User) -> Run:
    with time_machine.travel(NOON.replace(hour=3), tick=False):
        return daytime(owner)


IN_STATE: dict[str, Callable[[User], Run]] = {
    "queued": before_the_window,
    "running": running,
    "paused": lambda owner: pause(running(owner)),
    "success": lambda owner: ended(owner, TargetStatus.SENT),
    "partial": lambda owner: ended(owner, TargetStatus.SENT, TargetStatus.FAILED),
    "failed": lambda owner: ended(owner, TargetStatus.FAILED),
    "canceled": lambda owner: lifecycle.cancel(running(owner)),
    "skipped": lambda owner: RunFactory.create(reminder__owner=owner, missed=True),
}


# Which move from which state.

NOT_TO_PAUSE = "Only a run that is queued or running, or continues by itself, can be paused."
REFUSED = [
    ("pause", "paused", f"Run {{}} is paused. {NOT_TO_PAUSE}"),
    *(
        ("pause", state, f"Run {{}} is {state}. {NOT_TO_PAUSE}")
        for state in ("success", "partial", "failed", "canceled", "skipped")
    ),
    *(
        ("resume", state, f"Run {{}} is {state}: only a paused run can be resumed.")
        for state in ("queued", "running", "success", "partial", "failed", "canceled", "skipped")
    ),
    *(
        ("cancel", state, f"Run {{}} is {state} already: there is nothing left to cancel.")
        for state in ("success", "partial", "failed", "canceled", "skipped")
    ),
    *(
        (
            "retry_failed",
            state,
            f"Run {{}} is {state}: only a run that ended partial or failed can be retried.",
        )
        for state in ("queued", "running", "paused", "success", "canceled", "skipped")
    ),
    *(
        ("archive", state, f"Run {{}} is {state}: wait for its end, or cancel it first.")
        for state in ("queued", "running", "paused")
    ),
]
ALLOWED = [
    (move, state)
    for move in RUN_MOVES
    for state in RunStatus
    if (move, state.value) not in {(name, refused) for name, refused, _ in REFUSED}
]


@pytest.mark.parametrize(("move", "state", "sentence"), REFUSED)
def test_a_move_from_the_wrong_state_is_refused_with_a_sentence(
    owner: User, move: str, state: str, sentence: str
) -> None:
    run = IN_STATE[state](owner)
    before = counted(run)
    with pytest.raises(WrongStateError) as error:
        RUN_MOVES[move](run)
    assert str(error.value) == sentence.format(run.pk)
    assert (Run.objects.get(pk=run.pk).status, counted(run)) == (state, before)


@pytest.mark.parametrize(("move", "state"), ALLOWED)
def test_every_other_move_is_made_and_the_counts_add_up(owner: User, move: str, state: str) -> None:
    add_up(RUN_MOVES[move](IN_STATE[state](owner)))


@pytest.mark.parametrize("who", ["stranger", "reader"])
@pytest.mark.parametrize("move", ["pause", "resume", "cancel", "retry_failed", "archive"])
def test_others_may_not_steer_a_run(move: str, who: str, request: pytest.FixtureRequest) -> None:
    run = RunFactory.create(reminder__owner=request.getfixturevalue("owner"))
    with pytest.raises(PermissionDenied, match="You may not change"):
        RUN_MOVES[move](run, by=request.getfixturevalue(who))


@pytest.mark.parametrize("who", ["owner", "mate", "staff"])
def test_those_who_may_are_remembered(who: str, request: pytest.FixtureRequest) -> None:
    person: User = request.getfixturevalue(who)
    run = pause(running(request.getfixturevalue("owner")), by=person)
    assert run.changed_by == person
    assert f"Paused by {person}." in run.summary


# Pause and resume.


def test_a_pause_gives_back_what_was_claimed_and_not_begun(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    abandon(run, account, begun=False)
    begun = abandon(run, account, begun=True)
    run = pause(run)
    assert counted(run) == {"pending": 2, "sending": 1}
    begun.refresh_from_db()
    assert begun.status == TargetStatus.SENDING, "it may have left: whoever sends it says what became of it"
    add_up(run)


def test_resume_touches_only_pending_targets(owner: User) -> None:
    run = becomes(running(owner, 4), TargetStatus.SENT, TargetStatus.FAILED, TargetStatus.UNCONFIRMED)
    before = status_of(run)
    run = lifecycle.resume(pause(run))
    assert run.status == RunStatus.RUNNING
    assert run.summary == ""
    assert status_of(run) == before


def test_a_run_resumed_after_its_window_gets_the_next_one(owner: User) -> None:
    with time_machine.travel(NOON, tick=False):
        run = pause(daytime(owner))
    with time_machine.travel(END + timedelta(hours=2), tick=False):
        run = lifecycle.resume(run)
    assert (run.status, run.opens_at) == (RunStatus.QUEUED, NEXT_DAY)
    assert run.closes_at == END + timedelta(days=1)


def test_a_run_resumed_on_another_day_gets_that_day(owner: User) -> None:
    with time_machine.travel(NOON, tick=False):
        run = pause(daytime(owner))
    with time_machine.travel(NOON + timedelta(days=3), tick=False):
        run = lifecycle.resume(run)
    assert (run.status, run.closes_at) == (RunStatus.RUNNING, END + timedelta(days=3))


def test_a_run_is_not_resumed_while_its_account_is_stopped(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    lifecycle.stop_account(account, status="flagged", reason="logged out")
    with pytest.raises(WrongStateError, match=f"{account} is flagged. Start the account first."):
        lifecycle.resume(run)


def test_an_account_with_nothing_pending_does_not_stand_in_the_way(owner: User) -> None:
    run = running(owner, 2, accounts=2)
    done, busy = (target.account for target in run.targets.order_by("pk"))
    becomes(run, TargetStatus.FAILED)
    pause(run)
    lifecycle.stop_account(done, status="offline", reason="away")
    assert lifecycle.resume(run).status == RunStatus.RUNNING
    assert busy.status == Account.Status.ACTIVE


@pytest.mark.django_db(transaction=True)
def test_two_who_resume_at_once_resume_once(owner: User) -> None:
    run = pause(running(owner))
    barrier, answers = threading.Barrier(2), []

    def resume() -> None:
        barrier.wait()
        try:
            answers.append(lifecycle.resume(run).status)
        except WrongStateError as error:
            answers.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=resume) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [f"Run {run.pk} is running: only a paused run can be resumed.", "running"]


# Cancel.


def test_a_canceled_run_skips_the_rest_and_ends(owner: User) -> None:
    run = lifecycle.cancel(becomes(running(owner), TargetStatus.SENT), by=owner)
    assert (run.status, run.shown_status) == (RunStatus.PARTIAL, "canceled")
    assert counted(run) == {"sent": 1, "skipped": 2}
    assert set(run.targets.filter(status="skipped").values_list("error", flat=True)) == {lifecycle.CANCELED}
    assert run.canceled_at is not None
    assert run.summary == f"Canceled by {owner} at {run.canceled_at:%H:%M}, 1 of 3 sent."


def test_canceling_does_not_call_skipped_what_may_have_arrived(owner: User) -> None:
    """With a key an unanswered message is tried again; a canceled run tries it no more, and asks."""
    run = becomes(running(owner), TargetStatus.SENT)
    doubtful, answered = run.targets.filter(status=TargetStatus.PENDING).order_by("pk")
    for target, outcomes in ((doubtful, ["unknown", "rate_limited"]), (answered, ["rate_limited"])):
        RunTarget.objects.filter(pk=target.pk).update(fence=1, error="no answer within 20 s")
        for outcome in outcomes:
            AttemptFactory.create(target=target, run=run, account=target.account, outcome=outcome)
    action = ACTIONS["cancel"]
    question = perform(action, [run], by=owner, said={})
    assert isinstance(question, Question)
    assert question.sentence.startswith(
        "1 of 3 already received it. 1 may have received it. The other 1 will not."
    )
    report = perform(action, [run], by=owner, said={"confirmed": "1"})
    assert isinstance(report, Report)
    assert report.told.endswith("1 message will not be sent. 1 may have arrived: check the unconfirmed ones.")
    assert status_of(run) == ["sent", "unconfirmed", "skipped"]
    run.refresh_from_db()
    assert run.summary.endswith(", 1 of 3 sent, 1 unconfirmed.")
    assert RunTarget.objects.get(pk=doubtful.pk).error == "no answer within 20 s"
    add_up(run)


def test_a_run_canceled_before_anything_was_sent_is_canceled(owner: User) -> None:
    run = lifecycle.cancel(running(owner))
    assert run.status == RunStatus.CANCELED
    assert run.finished_at is not None


def test_the_summary_of_a_pause_does_not_outlive_it(owner: User) -> None:
    run = lifecycle.cancel(pause(becomes(running(owner), TargetStatus.SENT)))
    assert run.summary.endswith(", 1 of 3 sent.")


def test_a_canceled_run_waits_for_what_is_in_the_air(owner: User) -> None:
    run = running(owner)
    abandon(run, Account.objects.get(), begun=True)
    run = lifecycle.cancel(run)
    assert run.status == RunStatus.PAUSED
    assert counted(run) == {"sending": 1, "skipped": 2}
    with pytest.raises(WrongStateError, match="was canceled and is about to end"):
        lifecycle.resume(run)


# Retry, confirm, resend.


def test_retry_queues_the_failed_targets_and_only_those(owner: User) -> None:
    run = ended(owner, TargetStatus.SENT, TargetStatus.FAILED, TargetStatus.SKIPPED)
    run = lifecycle.retry_failed(run)
    assert run.status == RunStatus.RUNNING
    assert status_of(run) == ["sent", "pending", "skipped"]
    assert run.finished_at is None
    target = run.targets.get(status="pending")
    assert (target.attempts, target.error, target.settled_at) == (0, "", None)
    add_up(run)


def test_a_run_without_failed_targets_has_nothing_to_retry(owner: User) -> None:
    run = ended(owner, TargetStatus.SENT, TargetStatus.SKIPPED)
    with pytest.raises(WrongStateError, match="has no failed targets: there is nothing to retry"):
        lifecycle.retry_failed(run)


def test_a_confirmed_target_counts_as_sent(owner: User) -> None:
    run = ended(owner, TargetStatus.SENT, TargetStatus.UNCONFIRMED)
    assert run.status == RunStatus.PARTIAL
    run = lifecycle.confirm(run.targets.get(status="unconfirmed"))
    assert run.status == RunStatus.SUCCESS
    assert run.summary == "2 of 2 people delivered."
    add_up(run)


def test_a_target_confirmed_while_its_run_goes_on_changes_only_the_counts(owner: User) -> None:
    run = becomes(running(owner), TargetStatus.UNCONFIRMED)
    run = lifecycle.confirm(run.targets.get(status="unconfirmed"))
    assert run.status == RunStatus.RUNNING
    assert counted(run) == {"sent": 1, "pending": 2}


def test_a_target_to_be_sent_again_opens_its_run(owner: User) -> None:
    run = ended(owner, TargetStatus.SENT, TargetStatus.UNCONFIRMED)
    run = lifecycle.resend(run.targets.get(status="unconfirmed"))
    assert run.status == RunStatus.RUNNING
    assert counted(run) == {"sent": 1, "pending": 1}
    assert run.run_accounts.filter(open=True).exists()
    add_up(run)


def test_a_target_of_a_paused_run_waits_for_its_resumption(owner: User) -> None:
    run = pause(becomes(running(owner), TargetStatus.UNCONFIRMED))
    run = lifecycle.resend(run.targets.get(status="unconfirmed"))
    assert run.status == RunStatus.PAUSED
    assert counted(run) == {"pending": 3}


def test_nothing_is_sent_again_through_an_account_that_is_stopped(owner: User) -> None:
    run = ended(owner, TargetStatus.SENT, TargetStatus.UNCONFIRMED)
    account = Account.objects.get()
    lifecycle.stop_account(account, status="offline", reason="away")
    with pytest.raises(WrongStateError, match=f"{account} is offline"):
        lifecycle.resend(run.targets.get(status="unconfirmed"))


@pytest.mark.parametrize("move", [lifecycle.confirm, lifecycle.resend])
@pytest.mark.parametrize("status", ["pending", "sent", "failed", "skipped"])
def test_only_an_unconfirmed_target_needs_a_decision(
    owner: User, move: Callable[..., Run], status: TargetStatus
) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, status=status)
    with pytest.raises(WrongStateError, match=f"This message is {status}: only an unconfirmed one"):
        move(target)


@pytest.mark.parametrize("move", [lifecycle.confirm, lifecycle.resend])
def test_a_stranger_decides_nothing(move: Callable[..., Run], owner: User, stranger: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, unconfirmed=True)
    with pytest.raises(PermissionDenied):
        move(target, by=stranger)


# The window.


def test_a_run_that_waited_goes_when_its_window_opens(owner: User) -> None:
    with time_machine.travel(NOON.replace(hour=3), tick=False) as clock:
        run = daytime(owner)
        tick()
        assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED
        clock.move_to(NOON.replace(hour=6))
        tick()
    run.refresh_from_db()
    assert (run.status, run.closes_at, run.opens_at) == (RunStatus.RUNNING, END, None)


def test_a_window_that_closes_on_a_run_pauses_it_with_the_whole_story(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner, 5), TargetStatus.SENT, TargetStatus.SENT)
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.WINDOW_CLOSED)
    assert run.opens_at is None
    assert run.summary == (
        "Delivery window closed at 18:00 (Asia/Kuala_Lumpur). 2 of 5 people delivered, 3 still pending. "
        "The account's limits were too low for these hours: widen the hours, or raise the limits. "
        "Resume it when you like."
    )
    assert counted(run) == {"sent": 2, "pending": 3}


def test_a_window_that_closes_before_anything_was_sent_fails_the_run(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = daytime(owner)
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert counted(run) == {"skipped": 3}
    assert "before anything was sent" in run.summary


def test_a_person_can_keep_a_run_that_would_resume_by_itself_from_it(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner, on_close="resume"), TargetStatus.SENT)
        clock.move_to(END)
        tick()
        run = pause(run, by=owner)
        clock.move_to(NEXT_DAY)
        tick()
        run.refresh_from_db()
        assert (run.status, run.pause_reason, run.opens_at) == ("paused", "operator", None)
        assert lifecycle.resume(run).status == RunStatus.RUNNING


def test_a_person_can_keep_a_run_from_going_on_with_its_account(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    lifecycle.stop_account(account, status="offline", reason="no answer")
    pause(run, by=owner)
    lifecycle.start_account(account)
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.OPERATOR)


def test_a_run_that_resumes_by_itself_does_so_at_the_next_opening(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner, on_close="resume"), TargetStatus.SENT)
        clock.move_to(END)
        tick()
        run.refresh_from_db()
        assert (run.status, run.pause_reason, run.opens_at) == ("paused", "window_closed", NEXT_DAY)
        assert "continues when the window opens again" in run.summary
        clock.move_to(NEXT_DAY)
        tick()
    run.refresh_from_db()
    assert (run.status, run.closes_at) == (RunStatus.RUNNING, END + timedelta(days=1))
    assert run.summary == ""


def test_a_run_whose_rest_is_planned_for_later_days_waits_without_asking(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner), TargetStatus.SENT)
        run.targets.filter(status="pending").update(not_before=NEXT_DAY + timedelta(hours=1))
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert (run.status, run.opens_at) == (RunStatus.QUEUED, NEXT_DAY)
    assert not Notification.objects.exists()


def test_around_the_clock_never_closes(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = running(owner)
        for days in (1, 20, 40):
            clock.move_to(NOON + timedelta(days=days))
            tick()
            run.refresh_from_db()
            assert run.status == RunStatus.RUNNING
            assert run.closes_at is not None
            assert run.closes_at > timezone.now()


def test_what_is_in_the_air_lands_before_a_closed_run_is_decided_on(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = daytime(owner)
        abandon(run, Account.objects.get(), begun=True)
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert counted(run) == {"pending": 2, "sending": 1}


def test_an_unconfirmed_target_keeps_a_closed_run_from_failing(owner: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner), TargetStatus.UNCONFIRMED)
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert run.status == RunStatus.PAUSED


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("daily cap", "raise it"),
        ("errors", "check the failed recipients"),
        ("large media", "use smaller ones"),
    ],
)
def test_the_summary_names_what_held_a_run_back(owner: User, cause: str, remedy: str) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        run = becomes(daytime(owner), TargetStatus.SENT)
        if cause == "daily cap":
            LimitFactory.create(account=Account.objects.get(), per_day=1)
            AttemptFactory.create(target=run.targets.first())
        elif cause == "errors":
            becomes(run, TargetStatus.FAILED)
        else:
            Run.objects.update(parts=[{"kind": "media", "sha256": "0" * 64}])
            AttemptFactory.create(target=run.targets.first(), took_ms=9000)
        clock.move_to(END)
        tick()
    run.refresh_from_db()
    assert remedy in run.summary


# Accounts.


def test_an_account_that_stops_pauses_its_running_runs_and_its_owner_is_told_once(
    owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    run, other = running(owner), running(owner)
    account = run.targets.first().account  # type: ignore[union-attr]
    with django_capture_on_commit_callbacks(execute=True):
        lifecycle.stop_account(account, status="flagged", reason="logged out by its service")
        lifecycle.stop_account(account, status="flagged", reason="logged out by its service")
    run.refresh_from_db()
    other.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_FLAGGED)
    assert "logged out by its service" in run.summary
    assert other.status == RunStatus.RUNNING, "it has another account"
    told = Notification.objects.get(kind="account")
    assert told.owner == owner
    assert "logged out by its service" in told.body


def test_runs_go_on_when_their_account_is_back(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    lifecycle.stop_account(account, status="offline", reason="no answer")
    run.targets.update(attempts=4)
    lifecycle.start_account(account)
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert set(run.targets.values_list("attempts", flat=True)) == {0}


def test_a_run_with_two_stopped_accounts_waits_for_both(owner: User) -> None:
    run = running(owner, accounts=2)
    first, second = Account.objects.order_by("pk")
    lifecycle.stop_account(first, status="offline", reason="no answer")
    lifecycle.stop_account(second, status="offline", reason="no answer")
    lifecycle.start_account(first)
    run.refresh_from_db()
    assert run.status == RunStatus.PAUSED
    lifecycle.start_account(second)
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING


def test_an_account_paused_by_a_person_says_who_and_tells_nobody(
    owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    run = running(owner)
    with django_capture_on_commit_callbacks(execute=True):
        account = lifecycle.pause_account(Account.objects.get(), by=owner)
    assert account.status_reason == f"paused by {owner}"
    run.refresh_from_db()
    assert run.pause_reason == PauseReason.OPERATOR
    assert not Notification.objects.filter(kind="account").exists()


def test_a_run_of_a_stopped_account_does_not_go_when_its_window_opens(owner: User) -> None:
    with time_machine.travel(NOON.replace(hour=3), tick=False) as clock:
        run = daytime(owner)
        lifecycle.stop_account(Account.objects.get(), status="flagged", reason="logged out")
        clock.move_to(NOON)
        tick()
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_FLAGGED)
    with time_machine.travel(NOON, tick=False):
        lifecycle.start_account(Account.objects.get())
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING


def test_what_a_service_says_late_does_not_undo_what_a_person_did(owner: User) -> None:
    account = AccountFactory.create(owner=owner, unpaired=True)
    assert lifecycle.stop_account(account, status="offline", reason="late").status == "unpaired"
    with pytest.raises(WrongStateError, match="not connected and cannot become offline"):
        lifecycle.stop_account(account, status="offline", reason="by hand", by=owner)


def test_an_account_comes_back_although_a_run_of_it_is_being_canceled(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    abandon(run, account, begun=True)
    lifecycle.stop_account(account, status="offline", reason="no answer")
    lifecycle.cancel(run)
    assert lifecycle.start_account(account).status == Account.Status.ACTIVE
    run.refresh_from_db()
    assert run.status == RunStatus.PAUSED


@pytest.mark.parametrize("move", [lifecycle.pause_account, lifecycle.start_account])
def test_a_stranger_steers_no_account(move: Callable[..., Account], owner: User, stranger: User) -> None:
    with pytest.raises(PermissionDenied):
        move(AccountFactory.create(owner=owner), by=stranger)


@pytest.mark.django_db(transaction=True)
def test_an_account_that_stops_while_its_run_is_resumed_ends_in_no_deadlock(owner: User) -> None:
    run = running(owner)
    account = Account.objects.get()
    errors: list[BaseException] = []

    def often(move: Callable[[], object]) -> None:
        for _ in range(15):
            try:
                move()
            except WrongStateError:
                continue
            except BaseException as error:  # noqa: BLE001 - a deadlock is what this test is about
                errors.append(error)
        connection.close()

    moves: list[Callable[[], object]] = [
        lambda: lifecycle.stop_account(account, status="offline", reason="x"),
        lambda: lifecycle.start_account(account),
        lambda: lifecycle.resume(run),
        lambda: pause(run),
    ]
    threads = [threading.Thread(target=often, args=(move,)) for move in moves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    add_up(run)


# The end of a run, where recipients were left out.


@pytest.mark.parametrize(
    ("left_out", "statuses", "status"),
    [
        (2, ["sent", "sent"], RunStatus.SUCCESS),
        (2, ["sent", "failed"], RunStatus.PARTIAL),
        (2, ["sent", "skipped"], RunStatus.PARTIAL),  # somebody who could have got it
        (2, ["sent", "unconfirmed"], RunStatus.PARTIAL),
        (2, ["failed"], RunStatus.FAILED),
        (2, [], RunStatus.FAILED),  # nobody could get it
    ],
)
def test_recipients_who_were_left_out_do_not_make_a_run_partial(
    owner: User, left_out: int, statuses: list[TargetStatus], status: RunStatus
) -> None:
    people = RecipientFactory.create_batch(left_out, owner=owner, opted_out=True)
    people += RecipientFactory.create_batch(len(statuses), owner=owner)
    reminder = ReminderFactory.create(owner=owner, recipients=people, window_start_hour=0, window_end_hour=24)
    load_for_freezing([reminder])
    run = make_run(freeze(reminder))
    if statuses:
        becomes(run, *map(TargetStatus, statuses))
        lifecycle.settle(run.pk)
        run.refresh_from_db()
    assert (run.status, run.left_out, run.expected) == (status, left_out, len(statuses))
    add_up(run)


def test_a_run_becomes_a_success_when_its_last_doubt_is_confirmed_whoever_was_left_out(owner: User) -> None:
    people = [RecipientFactory.create(owner=owner, opted_out=True), RecipientFactory.create(owner=owner)]
    run = fire(
        ReminderFactory.create(owner=owner, recipients=people, window_start_hour=0, window_end_hour=24)
    )
    becomes(run, TargetStatus.UNCONFIRMED)
    lifecycle.settle(run.pk)
    assert lifecycle.confirm(run.targets.get(status="unconfirmed")).status == RunStatus.SUCCESS


# News.


@pytest.mark.parametrize(
    ("statuses", "kind", "body"),
    [
        (["sent", "sent"], "success", "2 of 2 people delivered."),
        (["sent", "failed"], "partial", "1 of 2 people delivered."),
        (["failed", "failed"], "failed", "0 of 2 people delivered."),
    ],
)
def test_the_owner_is_told_how_a_run_ended(
    owner: User,
    statuses: list[TargetStatus],
    kind: str,
    body: str,
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        ended(owner, *map(TargetStatus, statuses))
    told = Notification.objects.get()
    assert (told.owner, told.kind) == (owner, kind)
    assert body in told.body


def test_a_canceled_run_is_no_news(owner: User, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        lifecycle.cancel(running(owner))
    assert not Notification.objects.exists()


def test_a_paused_run_tells_its_owner_where_it_stands(
    owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    run = becomes(running(owner, 3), TargetStatus.SENT)
    with django_capture_on_commit_callbacks(execute=True):
        pause(run)
    told = Notification.objects.get()
    assert (told.title, told.body) == (
        "Reminder paused",
        f"{run.name}: 1 of 3 people delivered. Tap to resume or cancel.",
    )
    assert told.url == f"/reminders/{run.reminder_id}/"


def test_an_error_rate_that_was_looked_at_does_not_trip_again_at_once(owner: User) -> None:
    run = becomes(running(owner, 30), *[TargetStatus.FAILED] * 10)
    assert lifecycle.trip(run.pk)
    lifecycle.resume(run)
    assert not lifecycle.trip(run.pk)
    becomes(Run.objects.get(pk=run.pk), *[TargetStatus.FAILED] * 10)
    assert lifecycle.trip(run.pk)
    assert not lifecycle.trip(run.pk), "it is paused already"
