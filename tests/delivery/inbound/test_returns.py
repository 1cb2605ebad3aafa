"""Late failures: kept on their target in any order, counted in the run, and nothing is sent to a dead address."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.test import TestCase
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Account, Recipient
from accounts.recipients import undeliverable
from activity.models import Inbound, Notification
from delivery import lifecycle
from delivery.engine import claims, recording
from delivery.engine.sql import run as ask
from delivery.inbound import store
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus
from delivery.transports.base import Inbound as Message
from delivery.transports.base import Receipt, ReceiptState
from reminders.conversations import replies
from tests.delivery.stage import add_up
from tests.factories import (
    AccountFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NUMBERS = count(1)


def report(provider_id: str, state: ReceiptState, *, at: datetime = NOON, reason: str = "") -> Receipt:
    """A report of its own: the same thing told again under another id."""
    return Receipt(
        event_id=f"report-{next(NUMBERS)}", provider_id=provider_id, state=state, at=at, reason=reason
    )


def take(account: Account, *events: Receipt | Message) -> None:
    """Take up events, and do what follows from them after the commit."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        store.store(account, events)
        replies.work(account.pk)


def a_run(account: Account, sent: int, **values: Any) -> Run:
    run = RunFactory.create(
        sent=sent,
        owner=account.owner,
        reminder__around_the_clock=True,
        closes_at=timezone.now() + timedelta(days=1),
        **values,
    )
    RunAccountFactory.create(run=run, account=account)
    for number in range(sent):
        RunTargetFactory.create(run=run, account=account, sent=True, provider_id=f"id-{number}")
    return run


@pytest.fixture
def account(db: None) -> Account:
    return AccountFactory.create()


def test_a_failure_is_counted_in_the_run_once_however_often_it_is_told(account: Account) -> None:
    run = a_run(account, 30)
    for reason in ("463", "463", "again"):
        take(account, report("id-3", ReceiptState.FAILED, reason=reason))
    add_up(run)
    assert (run.sent, run.returned, run.status) == (30, 1, "running")
    target = run.targets.get(provider_id="id-3")
    assert (target.status, target.return_kind, target.returned_at) == ("sent", "temporary", NOON)
    assert target.recipient.undeliverable_at is None


def test_a_report_before_the_answer_to_its_send_counts_once_the_answer_is_there(account: Account) -> None:
    run = RunFactory.create(owner=account.owner, sending=1)
    target = RunTargetFactory.create(run=run, account=account, begun=True)
    Account.objects.filter(pk=account.pk).update(fence=1)
    take(account, report("late", ReceiptState.BOUNCED))
    assert Inbound.objects.get().handled_at is None

    land(run, target, provider_id="late")
    Inbound.objects.update(created_at=timezone.now() - timedelta(hours=5))
    replies.sweep()
    add_up(run)
    assert (run.sent, run.returned) == (1, 1)


def test_a_report_about_a_first_part_counts_when_the_last_part_is_sent(account: Account) -> None:
    run = RunFactory.create(owner=account.owner, sending=1)
    target = RunTargetFactory.create(run=run, account=account, begun=True, provider_id="part-0", parts_done=1)
    take(account, report("part-0", ReceiptState.FAILED))
    add_up(run)
    assert (run.sent, run.returned) == (0, 0)

    land(run, target, provider_id="part-1", part=1)
    add_up(run)
    assert (run.sent, run.returned) == (1, 1)


def test_a_report_about_a_message_in_doubt_counts_when_a_person_says_that_it_was_sent(
    account: Account,
) -> None:
    run = RunFactory.create(owner=account.owner, unconfirmed=1, status="partial", finished_at=timezone.now())
    target = RunTargetFactory.create(run=run, account=account, unconfirmed=True, provider_id="doubt")
    take(account, report("doubt", ReceiptState.BOUNCED, reason="550 5.1.1"))
    add_up(run)
    assert run.returned == 0

    lifecycle.confirm(target)
    add_up(run)
    assert (run.sent, run.returned) == (1, 1)


def test_a_message_that_is_sent_again_has_not_come_back(account: Account) -> None:
    run = RunFactory.create(owner=account.owner, unconfirmed=1, status="partial", finished_at=timezone.now())
    RunAccountFactory.create(run=run, account=account)
    target = RunTargetFactory.create(run=run, account=account, unconfirmed=True, provider_id="doubt")
    take(account, report("doubt", ReceiptState.FAILED))
    lifecycle.resend(target)
    target.refresh_from_db()
    assert (target.status, target.returned_at, target.return_kind) == ("pending", None, "")


def test_a_report_that_nobody_knows_waits_for_a_day(account: Account) -> None:
    take(account, report("unknown", ReceiptState.FAILED))
    for hours, handled in ((1, False), (22, False), (23.5, True)):
        Inbound.objects.update(created_at=timezone.now() - timedelta(hours=hours))
        replies.sweep()
        assert (Inbound.objects.get().handled_at is not None) is handled


def test_a_permanent_failure_marks_the_address_with_reason_and_source(account: Account) -> None:
    run = a_run(account, 30)
    take(account, report("id-0", ReceiptState.BOUNCED, reason="550 5.1.1 No such user"))
    recipient = Recipient.objects.get(targets__provider_id="id-0")
    assert recipient.undeliverable_for == "550 5.1.1 No such user"
    assert recipient.undeliverable_source == f"report to {account}, run {run.pk}"
    assert recipient.consent_changes.get().move == "dead"


def test_a_complaint_opts_its_sender_out(account: Account) -> None:
    a_run(account, 30)
    take(account, report("id-0", ReceiptState.COMPLAINED))
    recipient = Recipient.objects.get(targets__provider_id="id-0")
    assert (recipient.opted_out_at is not None, recipient.undeliverable_at) == (True, None)


def test_a_message_from_them_lifts_the_mark_and_an_older_report_does_not_set_it_again(
    account: Account,
) -> None:
    run = a_run(account, 30)
    target = run.targets.get(provider_id="id-0")
    Recipient.objects.filter(pk=target.recipient_id).update(owner=account.owner)
    other = RunFactory.create(sent=1, owner=account.owner)
    RunTargetFactory.create(
        run=other, account=account, sent=True, provider_id="older", recipient=target.recipient
    )
    take(account, report("id-0", ReceiptState.BOUNCED))
    said = timezone.now() + timedelta(minutes=1)
    address = target.recipient.address
    take(
        account,
        Message(event_id="said", provider_id="said", sender=address, chat=address, text="Hello", at=said),
    )
    target.recipient.refresh_from_db()
    assert target.recipient.undeliverable_at is None

    take(account, report("older", ReceiptState.BOUNCED), report("id-0", ReceiptState.BOUNCED))
    target.recipient.refresh_from_db()
    assert target.recipient.undeliverable_at is None


def test_a_run_whose_messages_come_back_pauses(account: Account) -> None:
    run = a_run(account, 20, window_start_hour=0, window_end_hour=24)
    take(account, *(report(f"id-{number}", ReceiptState.FAILED) for number in range(4)))
    run.refresh_from_db()
    assert (run.status, run.returned) == ("running", 4)
    take(account, report("id-4", ReceiptState.FAILED))
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == ("paused", "error_rate")
    assert "5 came back later" in run.summary

    lifecycle.resume(run)
    run.refresh_from_db()
    assert (run.status, run.returned_before) == ("running", 5)  # a person has seen these


def test_the_owner_of_a_run_that_has_ended_is_told_once(account: Account) -> None:
    run = a_run(account, 20, status="success", finished_at=timezone.now())
    for number in range(6):
        take(account, report(f"id-{number}", ReceiptState.FAILED))
    run.refresh_from_db()
    assert (run.status, run.returned) == ("success", 6)
    told = Notification.objects.get()
    assert (told.title, told.run_id) == ("Messages came back", run.pk)
    assert "3 of 20 sent messages came back (15%)" in told.body


def test_leave_to_send_is_refused_for_a_dead_address(account: Account) -> None:
    run = RunFactory.create(owner=account.owner, sending=1, closes_at=timezone.now() + timedelta(days=1))
    target = RunTargetFactory.create(run=run, account=account, claimed=True)
    Account.objects.filter(pk=account.pk).update(fence=1, status="active")
    assert begun(target) is not None
    undeliverable.mark(target.recipient_id, reason="gone", source="a test")
    assert begun(target) is None

    claims.let_go([target.pk], fence=1, now=timezone.now(), begun=True)
    target.refresh_from_db()
    add_up(run)
    assert (target.status, target.error, run.left_out) == ("skipped", "undeliverable", 1)


def begun(target: RunTarget) -> object:
    intent = recording.Intent(
        target_id=target.pk, part=0, fence=1, wished_at=timezone.now() - timedelta(hours=1)
    )
    query = recording.begin([intent], now=timezone.now(), guard=timedelta(), tolerance=timedelta(seconds=5))
    return ask(query)[0]


def land(run: Run, target: RunTarget, *, provider_id: str, part: int = 0) -> None:
    whose = recording.Ledgered(
        run_id=run.pk, owner_id=run.owner_id, account_id=target.account_id, action=run.action
    )
    landing = recording.Landing(
        whose=whose,
        fence=1,
        target_id=target.pk,
        part=part,
        attempt=1,
        began_at=timezone.now(),
        took_ms=1,
        outcome="sent",
        provider_id=provider_id,
        error="",
        status=TargetStatus.SENT,
        parts_done=part + 1,
        not_before=None,
    )
    ask(recording.record([landing], now=timezone.now()))


FATES = [ReceiptState.SENT, ReceiptState.DELIVERED, ReceiptState.READ, *ReceiptState]
moves = st.lists(
    st.one_of(
        st.tuples(st.just("told"), st.integers(0, 3), st.sampled_from(FATES)),
        st.tuples(st.just("lands"), st.integers(0, 3), st.none()),
        st.tuples(st.just("swept"), st.none(), st.none()),
    ),
    max_size=14,
)


@pytest.mark.django_db
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(moves=moves)
def test_with_any_order_delay_and_repetition_of_reports_the_counts_add_up(
    moves: list[tuple[str, Any, Any]],
) -> None:
    account = AccountFactory.create(fence=1)
    run = RunFactory.create(owner=account.owner, sending=4, closes_at=timezone.now() + timedelta(days=1))
    RunAccountFactory.create(run=run, account=account)
    targets = [RunTargetFactory.create(run=run, account=account, begun=True) for _ in range(4)]
    landed, failed = set[int](), dict[int, set[ReceiptState]]()
    for move, place, state in [
        *moves,
        *(("lands", place, None) for place in range(4)),
        ("swept", None, None),
    ]:
        if move == "told":
            take(account, report(f"{run.pk}-{place}", state))
            if state in {ReceiptState.FAILED, ReceiptState.BOUNCED, ReceiptState.COMPLAINED}:
                failed.setdefault(place, set()).add(state)
        elif move == "lands" and place not in landed:
            landed.add(place)
            land(run, targets[place], provider_id=f"{run.pk}-{place}")
        elif move == "swept":
            replies.sweep()
        add_up(run)
    assert (run.sent, run.returned) == (4, len(failed))
    for place, target in enumerate(targets):
        who = Recipient.objects.get(pk=target.recipient_id)
        told = failed.get(place, set())
        assert (who.opted_out_at is not None) is (ReceiptState.COMPLAINED in told)
        if told in ({ReceiptState.BOUNCED}, {ReceiptState.BOUNCED, ReceiptState.FAILED}):
            assert who.undeliverable_at is not None
        if not told & {ReceiptState.BOUNCED, ReceiptState.COMPLAINED}:
            assert (who.undeliverable_at, who.opted_out_at) == (None, None)
