"""Steering runs from the terminal: what is said, and the exit code."""

import json
import time
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from delivery import lifecycle
from delivery.management.commands import run_status
from delivery.models import Run
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire
from reminders.models import Reminder
from tests.delivery.stage import becomes
from tests.factories import ReminderFactory, RunFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

COMMANDS = ("pause_run", "resume_run", "cancel_run", "retry_failed")


@pytest.fixture
def reminder(owner: User) -> Reminder:
    return ReminderFactory.create(
        owner=owner, name="Fair", recipients=3, scheduled=True, by_hand=True, around_the_clock=True
    )


@pytest.fixture
def run(reminder: Reminder) -> Run:
    return fire(reminder)


def said(*arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def refused(*arguments: Any, **options: Any) -> tuple[int, str]:
    with pytest.raises(CommandError) as error:
        call_command(*arguments, **options)
    return error.value.returncode, str(error.value)


def test_a_reminder_is_fired(reminder: Reminder, owner: User) -> None:
    text = said("fire_reminder", reminder.pk, user="owner")
    run = Run.objects.get()
    assert text == f"Run {run.pk}, Fair: running; 0 of 3 people delivered, 3 pending.\n"


def test_an_unknown_reminder_is_exit_code_2(db: None) -> None:
    assert refused("fire_reminder", 404) == (2, "There is no reminder 404.")


def test_a_reminder_without_recipients_is_exit_code_1(reminder: Reminder) -> None:
    reminder.recipients.clear()
    code, sentence = refused("fire_reminder", reminder.pk)
    assert (code, "no recipients" in sentence) == (1, True)


def test_a_stranger_fires_nothing(reminder: Reminder, stranger: User) -> None:
    code, sentence = refused("fire_reminder", reminder.pk, user="stranger")
    assert (code, "You may not change" in sentence) == (1, True)


def test_a_thing_is_said_once(run: Run, owner: User) -> None:
    first, second = said("pause_run", run.pk, user="owner").splitlines()[-2:]
    assert first == f"Run {run.pk}, Fair: paused (operator); 0 of 3 people delivered, 3 pending."
    assert second == "Paused by owner."
    assert len(said("cancel_run", run.pk, yes=True).splitlines()) == 2


def test_a_run_is_printed_as_json(run: Run) -> None:
    found = json.loads(said("run_status", run.pk, json=True))
    assert (found["run"], found["status"], found["pending"], found["opens_at"]) == (
        run.pk,
        "running",
        3,
        None,
    )
    assert json.loads(said("pause_run", run.pk, json=True))["pause_reason"] == "operator"


def test_a_run_is_paused_resumed_and_canceled(run: Run) -> None:
    assert f"Run {run.pk}, Fair: paused (operator); 0 of 3 people delivered, 3 pending." in said(
        "pause_run", run.pk
    )
    assert f"Run {run.pk}, Fair: running; 0 of 3 people delivered, 3 pending." in said("resume_run", run.pk)
    assert f"Run {run.pk}, Fair: canceled; 0 of 3 people delivered, 3 skipped." in said(
        "cancel_run", run.pk, yes=True
    )


def test_cancel_asks_first(run: Run) -> None:
    code, sentence = refused("cancel_run", run.pk)
    assert (code, run.status) == (1, "running")
    assert "0 of 3 already received it. The other 3 will not." in sentence
    assert sentence.endswith("repeat the command with --yes.")
    assert "“Fair” was canceled. 3 messages will not be sent." in said("cancel_run", run.pk, yes=True)


def test_above_a_hundred_messages_the_name_is_given(owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, name="Fair", paused=True, sent=10, pending=101)
    assert refused("cancel_run", run.pk, yes=True)[1].endswith('--yes --name "Fair".')
    assert "The name does not match." in refused("cancel_run", run.pk, yes=True, name="Fire")[1]
    assert "was canceled" in said("cancel_run", run.pk, yes=True, name=" fair ")


def test_failed_targets_are_retried(run: Run) -> None:
    becomes(run, *[TargetStatus.FAILED] * 3)
    lifecycle.settle(run.pk)
    assert "running; 0 of 3 people delivered, 3 pending." in said("retry_failed", run.pk)


@pytest.mark.parametrize("command", [*COMMANDS, "run_status"])
def test_an_unknown_run_is_exit_code_2(command: str) -> None:
    code, sentence = refused(command, 404)
    assert (code, sentence) == (2, "There is no run 404. The Activity page lists all runs.")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_user_is_exit_code_2(command: str, run: Run) -> None:
    assert refused(command, run.pk, user="nobody") == (2, "There is no user nobody.")


@pytest.mark.parametrize("command", COMMANDS)
def test_somebody_elses_run_is_exit_code_1(command: str, run: Run, stranger: User) -> None:
    code, sentence = refused(command, run.pk, user="stranger")
    assert (code, "You may not change" in sentence) == (1, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_in_the_wrong_state_is_exit_code_1(command: str, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, canceled=True)
    code, sentence = refused(command, run.pk)
    assert (code, f"Run {run.pk} is canceled" in sentence) == (1, True)


def test_the_status_is_a_sentence(run: Run) -> None:
    assert said("run_status", run.pk) == f"Run {run.pk}, Fair: running; 0 of 3 people delivered, 3 pending.\n"


def while_sleeping(act: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `act` when the command sleeps; other threads sleep as usual."""
    monkeypatch.setattr(run_status, "time", SimpleNamespace(sleep=act, monotonic=time.monotonic))


def test_watching_ends_with_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(_seconds: float) -> None:
        Run.objects.filter(pk=run.pk).update(status=RunStatus.SUCCESS, sent=3, pending=0)

    while_sleeping(finish, monkeypatch)
    text = said("run_status", run.pk, watch=True)
    assert "0 of 3 sent, 0 failed" in text
    assert text.endswith(f"3 of 3 sent, 0 failed\nRun {run.pk}, Fair: success; 3 of 3 people delivered.\n")


def test_a_watcher_may_leave(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    while_sleeping(interrupt, monkeypatch)
    assert f"Run {run.pk}, Fair: running;" in said("run_status", run.pk, watch=True)


@pytest.mark.parametrize(
    ("counts", "filled"),
    [({}, 40), ({"pending": 4}, 0), ({"sent": 1, "failed": 1, "pending": 2}, 20), ({"sent": 4}, 40)],
)
def test_the_bar_is_filled_by_what_is_settled(counts: dict[str, int], filled: int) -> None:
    assert run_status.bar(RunFactory.build(**counts)).count("█") == filled
