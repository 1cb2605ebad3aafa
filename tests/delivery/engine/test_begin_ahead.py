"""Intents are written a moment ahead: each message leaves at its time, and what is called back does not leave."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from pytest_django import Settings

from accounts.models import Recipient
from activity.models import Attempt
from delivery import lifecycle
from delivery.engine import claims, pump, recording
from delivery.engine.recording import FARTHEST_AHEAD, Intent
from delivery.engine.shift import agenda, shift
from delivery.engine.sql import run as run_query
from delivery.models import Run, RunTarget
from delivery.sessions import first_contacts
from delivery.states import PauseReason, TargetStatus
from tests.delivery.engine.test_last_look import until
from tests.delivery.stage import Stage, abandon, add_up, counted, pumping, serve
from tests.factories import RecipientFactory

GAP = {"gap_min": 0.6, "gap_max": 0.6}
SLACK = timedelta(milliseconds=2)


def begun_ahead(run: Run) -> bool:
    """Decide whether a message has begun that was not received: the first one is recorded."""
    return (
        RunTarget.objects.filter(run=run, begun_at__isnull=False).exists() and counted(run).get("sent") == 1
    )


@pytest.fixture
def far_ahead(monkeypatch: pytest.MonkeyPatch, quick: Settings) -> Settings:
    """The second message begins right after the first, a long moment before it leaves: a busy machine is slow."""
    monkeypatch.setattr(agenda, "AHEAD", 7.0)
    monkeypatch.setattr("delivery.engine.shift.launch.IN_TIME", 0.0)
    monkeypatch.setattr("delivery.engine.shift.land.patience", lambda _: 0.0)
    monkeypatch.setattr(shift, "LOOK_AROUND", 0.02)
    quick.HORIZON_SECONDS, quick.PUMP_SECONDS = 15, 15
    return quick


def test_no_message_leaves_before_its_time_and_the_ledger_has_that_time(stage: Stage) -> None:
    account = stage.account(limits=GAP)
    run = serve(stage.fire(account, to=4), account)
    received = [line["at"] for line in stage.received(account)]
    noted = Attempt.objects.filter(run=run).order_by("at").values_list("at", flat=True)
    assert all(after - before >= timedelta(seconds=0.6) - SLACK for before, after in pairwise(noted))
    for at, seen in zip(noted, received, strict=True):
        assert seen >= (at - SLACK).timestamp() * 1000


def stop_worker(run: Run) -> None:
    pump.stopping.set()


def pause(run: Run) -> None:
    lifecycle.pause(run, reason=PauseReason.OPERATOR)


@pytest.mark.parametrize("change", [stop_worker, pause, lifecycle.cancel], ids=["stop", "pause", "cancel"])
def test_what_happens_between_begin_and_leaving_keeps_the_message_back(
    stage: Stage, far_ahead: Settings, change: Callable[[Run], object]
) -> None:
    account = stage.account(idempotent=False, limits={"gap_min": 6.5, "gap_max": 6.5})
    run = stage.fire(account, to=2)
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    try:
        until(lambda: begun_ahead(run))
        change(run)
        thread.join(60)
    finally:
        pump.stopping.clear()
    assert not thread.is_alive()
    assert len(stage.received(account)) == 1
    [other] = run.targets.exclude(status=TargetStatus.SENT)
    assert other.status == (TargetStatus.SKIPPED if change is lifecycle.cancel else TargetStatus.PENDING)
    assert other.attempts == 0, "what was kept back counts no attempt"
    add_up(run)


def test_a_message_that_a_dead_pump_began_ahead_is_in_doubt_and_no_more_than_that(stage: Stage) -> None:
    account = stage.account(idempotent=False)
    run = stage.fire(account, to=2)
    abandon(run, account, begun=True, ago=-timedelta(seconds=agenda.AHEAD))
    pump.pump(account.pk)
    assert counted(run) == {"sent": 1, "sending": 1}, "it may still be under way"
    RunTarget.objects.filter(run=run, status=TargetStatus.SENDING).update(
        begun_at=datetime.now(UTC) - timedelta(minutes=5)
    )
    serve(run, account)
    assert counted(run) == {"sent": 1, "unconfirmed": 1}


def test_a_clock_that_was_set_back_dates_no_message_far_ahead(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=1)
    now = datetime.now(UTC)
    [claimed] = claims.claim(run.pk, account.pk, fence=account.fence, most=1, now=now)
    wish = Intent(
        target_id=claimed.target_id,
        part=0,
        fence=account.fence,
        wished_at=now,
        leaves_at=now + timedelta(hours=1),
    )
    second = timedelta(seconds=1)
    [begun] = run_query(recording.begin([wish], now=now, guard=second, tolerance=second))
    assert begun is not None
    assert (begun.at, begun.written) == (now + FARTHEST_AHEAD, now)
    assert run.targets.get().begun_at == begun.at


LONG = {"gap_min": 0.3, "gap_max": 0.3}  # seconds; all targets are claimed at once


def test_new_people_who_were_claimed_ahead_get_nothing_once_first_contacts_are_locked(
    stage: Stage, quick: Settings
) -> None:
    quick.HORIZON_SECONDS = 10
    account = stage.account(limits=LONG)
    group = RecipientFactory.create(owner=stage.owner, group=True)
    run = stage.fire(account, to=[*stage.recipients(15), group])
    with pumping(stage, account, after=2):
        until = datetime.now(UTC) + timedelta(hours=6)
        first_contacts.lock(account, at=datetime.now(UTC), until=until)
        left = len(stage.received(account))
    pump.pump(account.pk)
    received = [line["to"] for line in stage.received(account)]
    assert len(received) <= left + 4, "the group, and three whose leave was given before"
    assert group.address in received
    waiting = run.targets.filter(status=TargetStatus.PENDING)
    assert waiting.count() == 16 - len(received)
    assert set(waiting.values_list("not_before", "attempts")) == {(until, 0)}
    add_up(run)


def test_a_recipient_whose_address_was_edited_after_the_claim_gets_it_at_the_new_one(
    stage: Stage, quick: Settings
) -> None:
    quick.HORIZON_SECONDS = 10
    account = stage.account(limits=LONG)
    people = stage.recipients(15)
    run = stage.fire(account, to=people)
    old = people[-1].address
    with pumping(stage, account, after=1):
        Recipient.objects.filter(pk=people[-1].pk).update(address="+60199999999")
    serve(run, account)
    received = [line["to"] for line in stage.received(account)]
    assert old not in received
    assert received.count("+60199999999") == 1
    assert counted(run) == {"sent": 15}
