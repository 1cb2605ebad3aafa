"""Runs, targets, attempts and replies over the API."""

from datetime import timedelta

import pytest
from django.utils import timezone
from redis import Redis

from accounts.models import User
from delivery.models import Run, RunTarget
from reminders.fire import fire
from tests.api.program import Program, problem_of
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    InboundFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)


@pytest.fixture
def run(owner: User) -> Run:
    reminder = ReminderFactory.create(owner=owner, name="Rent is due", around_the_clock=True)
    return RunFactory.create(reminder=reminder, targets=3, closes_at=timezone.now() + timedelta(hours=5))


def test_a_run_says_when_it_goes_on_and_why_not_sooner(program: Program, run: Run) -> None:
    told = program.get(f"/runs/{run.pk}")
    assert (told["status"], told["pending"], told["total"]) == ("running", 3, 3)
    assert told["leaves_at"] is not None
    assert told["sentence"].startswith("Sending")
    assert told["senders"][0]["sentence"] == told["sentence"]


def test_a_run_of_a_waiting_account_names_the_reason(program: Program, run: Run) -> None:
    until = timezone.now() + timedelta(minutes=9)
    run.run_accounts.get().account.__class__.objects.update(
        waiting_for="per_hour", waiting_until=until, wake_at=until
    )
    told = program.get("/runs")["items"][0]
    assert told["waiting_for"] == "per_hour"
    assert told["sentence"].startswith("Limit")
    assert told["leaves_at"][:16] == until.isoformat()[:16]


def test_pause_and_resume_are_those_of_the_pages(program: Program, run: Run) -> None:
    told = program.post(f"/runs/{run.pk}/pause")
    assert (told["status"], told["pause_reason"], told["waiting_for"]) == ("paused", "operator", "operator")
    assert told["leaves_at"] is None
    assert told["sentence"].startswith("Paused by owner.")
    assert problem_of(program.ask("POST", f"/runs/{run.pk}/pause"))["type"] == "wrong-state"
    assert program.post(f"/runs/{run.pk}/resume")["status"] == "running"


def test_cancel_asks_first_with_the_question_of_the_page(program: Program, run: Run) -> None:
    told = problem_of(program.ask("POST", f"/runs/{run.pk}/cancel"))
    assert (told["type"], told["pending"], told["phrase"]) == ("confirmation-needed", 3, "")
    assert "0 of 3 already received it. The other 3 will not." in told["detail"]
    assert Run.objects.get().status == "running"
    assert program.post(f"/runs/{run.pk}/cancel", {"confirmed": True})["status"] == "canceled"


def test_above_a_hundred_messages_the_name_is_typed(program: Program, run: Run) -> None:
    Run.objects.update(pending=101, total=101)
    path = f"/runs/{run.pk}/cancel"
    assert problem_of(program.ask("POST", path, {"confirmed": True}))["phrase"] == "Rent is due"
    answer = program.ask("POST", path, {"confirmed": True, "typed": "rent is DUE "})
    assert answer.status_code == 200


def test_failed_messages_are_retried_and_nothing_else(program: Program, owner: User) -> None:
    run = RunFactory.create(reminder=ReminderFactory.create(owner=owner, around_the_clock=True), partial=True)
    account = AccountFactory.create(owner=owner)
    RunAccountFactory.create(run=run, account=account, open=False)
    RunTargetFactory.create(run=run, account=account, failed=True)
    RunTargetFactory.create(run=run, account=account, sent=True)
    told = program.post(f"/runs/{run.pk}/retry")
    assert (told["status"], told["pending"], told["sent"], told["failed"]) == ("running", 1, 1, 0)


def test_an_unconfirmed_message_is_decided(program: Program, owner: User) -> None:
    run = RunFactory.create(
        reminder=ReminderFactory.create(owner=owner, around_the_clock=True), unconfirmed=2
    )
    account = AccountFactory.create(owner=owner)
    RunAccountFactory.create(run=run, account=account)
    first, second = RunTargetFactory.create_batch(2, run=run, account=account, unconfirmed=True)
    assert program.post(f"/runs/{run.pk}/targets/{first.pk}/confirm")["status"] == "sent"
    assert program.post(f"/runs/{run.pk}/targets/{second.pk}/resend")["status"] == "pending"
    answer = program.ask("POST", f"/runs/{run.pk}/targets/{first.pk}/resend")
    assert problem_of(answer)["type"] == "wrong-state"


def test_targets_are_listed_by_status_with_their_address_and_reason(program: Program, run: Run) -> None:
    RunTargetFactory.create(run=run, failed=True)
    told = program.get(f"/runs/{run.pk}/targets")["items"]
    assert [row["status"] for row in told] == ["failed", "pending", "pending", "pending"]
    assert (told[0]["sentence"], told[0]["leaves_at"]) == ("No such number.", None)
    assert told[1]["leaves_at"] is not None
    pending = program.get(f"/runs/{run.pk}/targets?status=pending&limit=2")
    rest = program.get(f"/runs/{run.pk}/targets?status=pending&cursor={pending['next_cursor']}")
    assert len(pending["items"]) + len(rest["items"]) == 3
    later = timezone.now() + timedelta(days=1)
    RunTarget.objects.filter(pk=told[1]["id"]).update(not_before=later)
    one = program.get(f"/runs/{run.pk}/targets/{told[1]['id']}")
    assert (one["waiting_for"], one["leaves_at"][:16]) == ("not_before", later.isoformat()[:16])


def test_runs_are_filtered(program: Program, owner: User, run: Run) -> None:
    other = RunFactory.create(reminder__owner=owner, success=True)
    RunFactory.create(reminder__owner=owner, success=True, archived=True)

    def ids(query: str) -> list[int]:
        return [row["id"] for row in program.get(f"/runs?{query}")["items"]]

    account = run.run_accounts.get().account_id
    assert ids("") == [other.pk, run.pk]
    assert ids("status=success") == [other.pk]
    assert ids(f"reminder={run.reminder_id}") == ids(f"account={account}") == [run.pk]
    assert ids("since=2999-01-01T00:00:00Z") == []
    assert problem_of(program.ask("GET", "/runs?since=2026-01-01T00:00:00"))["errors"][0]["field"] == "since"


def test_the_ledger_and_the_replies_are_listed_newest_first(program: Program, owner: User, run: Run) -> None:
    target = RunTargetFactory.create(run=run, sent=True)
    now = timezone.now()
    attempts = [
        AttemptFactory.create(target=target, at=now - timedelta(hours=n), owner=owner) for n in range(3)
    ]
    AttemptFactory.create()
    told = program.get("/attempts?limit=2")
    assert [row["id"] for row in told["items"]] == [attempts[0].pk, attempts[1].pk]
    assert program.get(f"/attempts?cursor={told['next_cursor']}")["items"][0]["id"] == attempts[2].pk
    account = AccountFactory.create(owner=owner)
    reply = InboundFactory.create(account=account, text="Yes please", run=run)
    InboundFactory.create(account=account, receipt=True)
    (row,) = program.get(f"/replies?run={run.pk}")["items"]
    assert (row["id"], row["text"]) == (reply.pk, "Yes please")
    assert program.get(f"/replies/{reply.pk}")["text"] == "Yes please"


def test_messages_that_came_back_are_counted_and_say_why(program: Program, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=2, returned=1)
    RunTargetFactory.create(run=run, returned=True)
    assert program.get(f"/runs/{run.pk}")["returned"] == 1
    (target,) = program.get(f"/runs/{run.pk}/targets")["items"]
    assert (target["status"], target["return_kind"], target["return_reason"]) == ("sent", "temporary", "463")


def test_a_run_is_handed_over_after_both_forecasts(program: Program, owner: User, redis: Redis) -> None:
    account, other = AccountFactory.create_batch(2, owner=owner)
    people = RecipientFactory.create_batch(3, owner=owner)
    run = fire(
        ReminderFactory.create(owner=owner, accounts=[account], recipients=people, around_the_clock=True)
    )
    shown = program.post(f"/runs/{run.pk}/hand-over", {"to": [other.pk]})
    assert (shown["done"], shown["previews"][0]["moves"]) == (False, {str(other.pk): 3})
    assert shown["previews"][0]["handed_over"]["fits"] is True
    done = program.post(f"/accounts/{account.pk}/hand-over", {"to": [other.pk], "confirmed": True})
    assert (done["done"], done["moved"], done["refused"]) == (True, 3, [])
    assert set(run.targets.values_list("account_id", flat=True)) == {other.pk}
    unknown = {"to": [999_999], "confirmed": True}
    assert problem_of(program.ask("POST", f"/runs/{run.pk}/hand-over", unknown))["status"] == 409
