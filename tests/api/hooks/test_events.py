"""The events that changes write, and the results of recipients."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone

from accounts.models import Delivery, User
from accounts.recipients import consent
from api.hooks import results
from delivery import lifecycle
from delivery.fanout import make_run
from delivery.inbound import returns
from delivery.models import Run, RunTarget
from reminders.conversations import replies
from reminders.fire import fire, freeze, load_for_freezing
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    InboundFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    WebhookFactory,
)


@pytest.fixture(autouse=True)
def _webhook(owner: User, redis: object) -> None:
    WebhookFactory.create(owner=owner)


def told() -> list[tuple[str, Any]]:
    return [(row.type, row.payload["data"]) for row in Delivery.objects.order_by("pk")]


def types() -> list[str]:
    return [type_ for type_, _ in told()]


@pytest.fixture
def run(owner: User) -> Run:
    reminder = ReminderFactory.create(
        owner=owner, by_hand=True, status="scheduled", around_the_clock=True, recipients=4
    )
    return fire(reminder, by=owner)


def test_the_life_of_a_run_is_told_in_order_with_its_counts(run: Run, owner: User) -> None:
    lifecycle.pause(run, reason="operator", by=owner)  # type: ignore[arg-type]  # a word will do
    lifecycle.resume(run, by=owner)
    lifecycle.cancel(run, by=owner)
    assert types() == ["run.started", "run.paused", "run.resumed", "run.finished"]
    data = told()[-1][1]["run"]
    assert (data["status"], data["skipped"], data["total"]) == ("canceled", 4, 4)
    assert {row.sequence for row in Delivery.objects.all()} == {f"run:{run.pk}"}


def test_consent_accounts_and_replies_are_told(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    anna = RecipientFactory.create(owner=owner)
    consent.opt_out(anna, how="Asked.")
    consent.opt_out(anna, how="Again.")
    consent.block(anna, how="Nasty.")
    consent.opt_in(anna, how="Asked.", by=owner)
    lifecycle.pause_account(account, by=owner)
    inbound = InboundFactory.create(
        account=account, recipient=anna, text="Yes", sender=anna.address, chat=anna.address
    )
    replies.take_up(inbound.pk)
    replies.take_up(inbound.pk)
    assert types() == ["recipient.opted_out", "recipient.opted_in", "account.changed", "reply.received"]
    assert told()[2][1]["account"]["status"] == "paused"
    assert (told()[3][1]["reply"]["text"], told()[3][1]["reply"]["recipient"]) == ("Yes", anna.pk)


def test_an_owner_without_a_webhook_writes_nothing(stranger: User) -> None:
    consent.opt_out(RecipientFactory.create(owner=stranger), how="Asked.")
    assert told() == []


def settle(target: RunTarget, status: str) -> None:
    """Note a result as the engine does: the target and the ledger together."""
    now = timezone.now()
    rows = RunTarget.objects.filter(pk=target.pk)
    if rows.exclude(status="pending").exists():
        return
    rows.update(status="sending", fence=1, claimed_at=now)
    rows.update(status=status, settled_at=now, claimed_at=None)
    AttemptFactory.create(target=target, run=target.run, account=target.account, owner=target.run.owner)


def test_results_are_told_in_batches_each_once_and_the_skipped_at_the_end(run: Run, owner: User) -> None:
    first, second, third, fourth = RunTarget.objects.select_related("run", "account").order_by("pk")
    assert results.collect() == 0
    settle(first, "sent")
    settle(second, "failed")
    assert results.collect() == 1
    assert results.collect() == 0
    settle(third, "unconfirmed")
    results.collect()
    Run.objects.filter(pk=run.pk).update(
        pending=0, sent=1, failed=1, unconfirmed=1, skipped=1, status="partial"
    )
    RunTarget.objects.filter(pk=fourth.pk).update(status="skipped", settled_at=timezone.now())
    while results.collect():
        pass
    batches = [data["targets"] for type_, data in told() if type_ == "run.targets"]
    found = [(target["id"], target["status"]) for batch in batches for target in batch]
    assert found[:3] == [(first.pk, "sent"), (second.pk, "failed"), (third.pk, "unconfirmed")]
    assert set(found[3:]) == {(fourth.pk, "skipped"), (third.pk, "unconfirmed")}
    assert results.collect() == 0


def test_a_run_that_reaches_nobody_tells_why(owner: User) -> None:
    gone = RecipientFactory.create(owner=owner, opted_out=True)
    reminder = ReminderFactory.create(
        owner=owner, by_hand=True, status="scheduled", around_the_clock=True, recipients=[gone]
    )
    load_for_freezing([reminder])
    make_run(freeze(reminder))  # as the schedule does
    assert results.collect() == 1
    (target,) = told()[-1][1]["targets"]
    assert (target["recipient"], target["status"], target["error"]) == (gone.pk, "skipped", "opted out")


def test_a_message_that_is_tried_again_is_told_when_it_has_a_result(run: Run) -> None:
    target = RunTarget.objects.select_related("run", "account").order_by("pk")[0]
    AttemptFactory.create(target=target, rate_limited=True, owner=run.owner)
    assert results.collect() == 0
    settle(target, "sent")
    assert results.collect() == 1


def test_a_slow_receiver_lets_results_wait_in_the_ledger(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "BATCH", 1)
    monkeypatch.setattr(results, "WAITING", 2)
    for target in RunTarget.objects.select_related("run", "account"):
        settle(target, "sent")
    for _ in range(9):
        results.collect()
    assert types().count("run.targets") == 2  # and the start of the run
    Delivery.objects.update(state="delivered", ended_at=timezone.now())
    for _ in range(9):
        results.collect()
    assert types().count("run.targets") == 4


def test_runs_that_wait_do_not_keep_the_results_of_others_back(
    run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MOST_FEEDS", 1)
    later = fire(
        ReminderFactory.create(
            owner=owner, by_hand=True, status="scheduled", around_the_clock=True, recipients=1
        ),
        by=owner,
    )
    settle(RunTarget.objects.select_related("run", "account").get(run=later), "sent")
    assert results.collect() == 1
    assert told()[-1][1]["run"] == later.pk


def test_results_of_a_person_who_was_deactivated_are_not_told(run: Run, owner: User) -> None:
    settle(RunTarget.objects.select_related("run", "account").order_by("pk")[0], "sent")
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert results.collect() == 0


def test_a_retried_run_is_followed_again(run: Run, owner: User) -> None:
    targets = list(RunTarget.objects.select_related("run", "account").order_by("pk"))
    for target in targets:
        settle(target, "failed")
    Run.objects.filter(pk=run.pk).update(pending=0, failed=4, status="failed", finished_at=timezone.now())
    while results.collect():
        pass
    lifecycle.retry_failed(Run.objects.get(pk=run.pk), by=owner)
    settle(targets[0], "sent")
    results.collect()
    assert told()[-1][1]["targets"][0]["status"] == "sent"


def test_a_run_of_the_time_before_the_webhook_is_not_told(stranger: User) -> None:
    RunFactory.create(reminder__owner=stranger, sent=1)
    WebhookFactory.create(owner=stranger)
    assert results.collect() == 0


def test_a_run_that_waits_is_told_as_started_when_it_begins(owner: User) -> None:
    reminder = ReminderFactory.create(
        owner=owner, by_hand=True, status="scheduled", around_the_clock=True, recipients=1
    )
    load_for_freezing([reminder])
    (run,) = [make_run(freeze(reminder, behind=fire(reminder, by=owner).pk))]
    assert types() == ["run.started"]  # of the one ahead
    lifecycle.start_waiting(run)
    assert types() == ["run.started", "run.started"]


@pytest.fixture
def hours(owner: User) -> Run:
    """A run that is paused until tomorrow, in hours that are over for today."""
    with time_machine.travel("2026-11-19T10:00:00Z", tick=False):
        reminder = ReminderFactory.create(
            owner=owner, by_hand=True, status="scheduled", zone="UTC", recipients=1, on_close="wait"
        )
        return fire(reminder, by=owner)


def test_resuming_outside_the_hours_is_told_once_when_it_sends_again(hours: Run, owner: User) -> None:
    with time_machine.travel("2026-11-19T22:00:00Z", tick=False):
        lifecycle.pause(hours, reason="operator", by=owner)  # type: ignore[arg-type]  # a word will do
        lifecycle.resume(hours, by=owner)
        assert types() == ["run.started", "run.paused"]
    with time_machine.travel("2026-11-20T10:00:00Z", tick=False):
        lifecycle.open_window(hours)
        assert types() == ["run.started", "run.paused", "run.resumed"]
        lifecycle.open_window(hours)
        assert types().count("run.resumed") == 1


def test_a_run_that_waits_for_the_next_day_is_told_as_paused(hours: Run) -> None:
    with time_machine.travel("2026-11-19T22:00:00Z", tick=False):
        RunTarget.objects.filter(run=hours).update(not_before=timezone.now() + timedelta(hours=12))
        lifecycle.close_window(hours)
    hours.refresh_from_db()
    assert (hours.status, types()) == ("queued", ["run.started", "run.paused"])
    with time_machine.travel("2026-11-20T10:00:00Z", tick=False):
        lifecycle.open_window(hours)
    assert types()[-1] == "run.resumed"


def test_a_decision_about_an_unconfirmed_message_is_told(run: Run, owner: User) -> None:
    doubtful = list(RunTarget.objects.select_related("run", "account").order_by("pk")[:3])
    ids = [target.pk for target in doubtful]
    for target in doubtful:
        settle(target, "unconfirmed")
    Run.objects.filter(pk=run.pk).update(pending=1, unconfirmed=3)
    lifecycle.confirm(RunTarget.objects.select_related("run", "account").get(pk=ids[0]), by=owner)
    lifecycle.confirm_all(run, by=owner)
    batches = [data["targets"] for type_, data in told() if type_ == "run.targets"]
    assert [[(each["id"], each["status"]) for each in batch] for batch in batches] == [
        [(ids[0], "sent")],
        [(ids[1], "sent"), (ids[2], "sent")],
    ]


def test_a_message_that_comes_back_later_is_told_again(run: Run) -> None:
    target = RunTarget.objects.select_related("run", "account").order_by("pk")[0]
    settle(target, "sent")
    Run.objects.filter(pk=run.pk).update(pending=3, sent=1)
    results.collect()
    report = InboundFactory.create(
        account=target.account, kind="receipt", state="bounced", target=target, text="550 nobody here"
    )
    for _ in range(2):  # a report may come twice
        with transaction.atomic():
            returns.lock([(report, target.pk)])
            returns.apply(target.account, [(report, target.pk)])
    batches = [data["targets"] for type_, data in told() if type_ == "run.targets"]
    assert [[each["return_kind"] for each in batch] for batch in batches] == [[""], ["permanent"]]
    assert batches[1][0]["return_reason"] == "550 nobody here"
