"""Shifts that meet what hardly ever happens: a process that stood still, a bug in the writing of a message, limits
and accounts that change under them, a database that is away at the very end."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, Limit
from activity.models import Attempt
from delivery import lifecycle
from delivery.engine import batching, last_look, pump, rescue, wakeups
from delivery.engine.lease import Lease
from delivery.engine.loop import send_loop
from delivery.engine.permits import Permits
from delivery.engine.shift import changes
from delivery.engine.shift.outgoing import Outgoing
from delivery.engine.shift.shift import Shift
from delivery.engine.tick import tick
from delivery.engine.wakeups import Rest
from delivery.limiter import Granted, Limiter
from delivery.models import Run
from delivery.states import PauseReason, RunStatus, TargetStatus, WaitReason
from sandbox.witness import doubles
from tests.delivery.stage import Stage, abandon, add_up, becomes, counted, only_target, pumping, serve

OPEN = 1e15  # as in limiter.lua


def shift_of(account: Account) -> Shift:
    transport = send_loop().transport(account.transport, account.credentials)
    return Shift(
        account,
        Lease(account_id=account.pk, token="t", fence=1),
        transport,
        seen=changes.look_at([account.pk])[account.pk],
        stopping=pump.stopping,
    )


# The process.


def test_a_message_that_a_process_held_up_for_longer_than_its_lease_is_looked_at_again(
    stage: Stage, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another pump may have called it lost by then, and a person may have sent it again: it counts no attempt."""
    account = stage.account(idempotent=False)
    run = stage.fire(account, to=1)
    real, stand_still = batching.Batches.begin, time.sleep
    held_up: list[bool] = []

    async def frozen(self: batching.Batches, intents: Any, **told: Any) -> Any:
        begun = await real(self, intents, **told)
        if not held_up:
            stand_still(last_look.FRESH + quick.LEASE_SECONDS)
            held_up.append(True)
        return begun

    quick.LEASE_SECONDS = 0.5
    monkeypatch.setattr(batching.Batches, "begin", frozen)
    pump.pump(account.pk)
    serve(run, account)
    assert counted(run) == {"sent": 1}
    assert Attempt.objects.get(run=run).attempt == 1
    assert len(stage.received(account)) == 1


def test_a_shift_that_has_nothing_to_do_while_it_refills_lets_the_others_go_on(stage: Stage) -> None:
    """All shifts of a worker share one loop: one that never waited would stop them all."""
    shift = shift_of(stage.account())

    async def scene() -> float:
        shift.state.leaving = True
        shift.refilling = asyncio.create_task(asyncio.sleep(0.01))
        return shift._until_next()

    assert send_loop().run(scene()) > 0


def test_a_message_that_cannot_be_written_fails_alone_and_the_shift_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = stage.account()
    people = stage.recipients(4)
    real = Outgoing.message

    def broken(self: Outgoing) -> Any:
        if self.target.address == people[1].address:
            raise RuntimeError("a bug")
        return real(self)

    monkeypatch.setattr(Outgoing, "message", broken)
    run = serve(stage.fire(account, to=people), account)
    assert (run.status, counted(run)) == (RunStatus.PARTIAL, {"sent": 3, "failed": 1})
    assert "internal error" in run.targets.get(recipient=people[1]).error


# The database.


def test_a_run_that_could_not_be_settled_is_settled_by_the_next_pump(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)

    def away(run_id: int) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(batching, "PATIENCE", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "settle", away)
        with pytest.raises(OperationalError):
            pump.pump(account.pk)
    assert counted(run) == {"sent": 2}
    assert run.status == RunStatus.RUNNING
    account.refresh_from_db()
    assert account.wake_at is not None, "else nobody would ever come back for it"
    serve(run, account)
    assert run.status == RunStatus.SUCCESS


def test_a_run_whose_window_makes_no_sense_holds_up_no_other(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    bad, good = stage.fire(account, to=1), stage.fire(account, to=1)
    Run.objects.filter(pk=bad.pk).update(zone="Mars/Olympus")
    Run.objects.update(status=RunStatus.QUEUED, opens_at=timezone.now() - timedelta(minutes=1))
    Account.objects.update(wake_at=timezone.now() - timedelta(seconds=1))
    redis.flushdb()
    tick()
    good.refresh_from_db()
    assert good.status == RunStatus.RUNNING
    assert redis.llen(f"paceline:queue:{wakeups.queue_name(account.pk)}")


# Limits.


def test_a_limit_that_a_person_lowers_holds_while_a_shift_is_under_way(stage: Stage, quick: Settings) -> None:
    quick.HORIZON_SECONDS = 0.2
    account = stage.account(limits={"gap_min": 0.1, "gap_max": 0.1})
    run = stage.fire(account, to=60)
    with pumping(stage, account, after=3):
        Limit.objects.filter(account=account).update(gap_min=600, gap_max=600)
    pump.pump(account.pk)  # the shift may have ended at once, for another one to go on
    account.refresh_from_db()
    assert counted(run)["pending"] > 25, "a shift of five seconds at the old pace would have sent fifty"
    assert account.waiting_for == WaitReason.GAP


def test_a_limit_that_a_person_sets_for_the_first_time_counts_what_was_sent_before(
    stage: Stage, quick: Settings
) -> None:
    quick.HORIZON_SECONDS = 0.2
    account = stage.account(limits={"gap_min": 0.1, "gap_max": 0.1})
    run = stage.fire(account, to=60)
    with pumping(stage, account, after=3):
        Limit.objects.filter(account=account).update(per_hour=5)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.PER_HOUR
    assert counted(run)["pending"] > 25


def test_what_landed_while_the_limiter_was_told_anew_does_not_stay_open(stage: Stage, redis: Redis) -> None:
    """A permit that nobody closes would count against every minute to come."""
    account = stage.account()
    permits = Permits(account, _taken(account), "message")
    granted = permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
    assert isinstance(granted, Granted)
    permit, at_ms = granted.units[0].permits[0], granted.units[0].at_ms
    Limiter(redis).forget(account.pk)
    permits.settle(permit)
    permits.take(cost=1, error_rate=0, in_hand={permit: at_ms}, in_flight=1)
    score = redis.zscore(f"paceline:{{{account.pk}}}:message:log", permit)
    assert score is not None
    assert score < OPEN


def test_what_had_begun_when_redis_forgot_counts_as_sent(stage: Stage, redis: Redis) -> None:
    account = stage.account(idempotent=False, limits={"per_day": 3})
    run = stage.fire(account, to=6)
    for _ in range(2):
        abandon(run, account, begun=True)
    redis.flushdb()
    pump.pump(account.pk)
    assert len(stage.received(account)) == 1, "two of the day's three may have left already"
    add_up(run)


# Accounts.


def test_attempts_that_an_account_could_not_make_are_forgiven_whatever_its_run_waits_for(
    stage: Stage,
) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)
    lifecycle.stop_account(account, status="offline", reason="no answer")
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.QUEUED, pause_reason="", opens_at=timezone.now() + timedelta(hours=1)
    )
    run.targets.update(attempts=5)
    lifecycle.start_account(account)
    assert set(run.targets.values_list("attempts", flat=True)) == {0}


def test_an_archived_account_is_not_started_by_what_its_service_says(stage: Stage) -> None:
    account = stage.account(status="offline", archived_at=timezone.now())
    assert lifecycle.start_account(account).status == "offline"
    with pytest.raises(lifecycle.WrongStateError, match="archived"):
        lifecycle.start_account(account, by=stage.owner)


def test_failed_targets_of_an_archived_account_are_not_queued_where_nobody_would_send_them(
    stage: Stage,
) -> None:
    account = stage.account()
    run = becomes(stage.fire(account, to=2), TargetStatus.SENT, TargetStatus.FAILED)
    lifecycle.settle(run.pk)
    Account.objects.update(archived_at=timezone.now())
    with pytest.raises(lifecycle.WrongStateError, match="archived"):
        lifecycle.retry_failed(run)


def test_a_retry_waits_for_an_account_that_was_told_to_slow_down(stage: Stage) -> None:
    account = stage.account(slow_factor=2.25, held_until=timezone.now() + timedelta(minutes=1))
    run = becomes(stage.fire(account, to=2), TargetStatus.SENT, TargetStatus.FAILED)
    lifecycle.settle(run.pk)
    lifecycle.retry_failed(run)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert stage.received(account) == []
    assert (account.waiting_for, account.slow_factor) == (WaitReason.SLOWED, 2.25)
    assert counted(run) == {"sent": 1, "pending": 1}


# Messages of several parts.


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_crash_in_the_middle_of_a_part_never_repeats_the_parts_before(
    stage: Stage, idempotent: bool
) -> None:
    account = stage.account(idempotent=idempotent)
    run = stage.fire(account, to=2, parts=3)
    target = abandon(run, account, begun=True, ago=timedelta(minutes=5))
    run.targets.filter(pk=target.pk).update(parts_done=1)
    serve(run, account)
    target.refresh_from_db()
    if not idempotent:
        assert (target.status, target.parts_done) == (TargetStatus.UNCONFIRMED, 1)
        serve(lifecycle.confirm(target), account)
    keys = [line["key"] for line in stage.delivered(account) if line["to"] == target.recipient.address]
    assert keys == [f"{target.key}-{part}" for part in ((1, 2) if idempotent else (2,))]
    assert counted(run) == {"sent": 2}


def test_a_run_canceled_between_two_parts_did_send_something(stage: Stage, quick: Settings) -> None:
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 400
    account = stage.account(group_concurrency=1)
    run = stage.fire(account, to=1, parts=2)
    with pumping(stage, account, after=1):
        while not Attempt.objects.filter(run=run).exists():
            time.sleep(0.01)
        lifecycle.cancel(run)
    run.refresh_from_db()
    assert len(stage.received(account)) == 1
    assert (run.status, counted(run)) == (RunStatus.PARTIAL, {"skipped": 1})


def test_a_window_that_closes_between_the_parts_of_the_first_message_pauses_the_run(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=2, parts=2)
    run.targets.filter(pk=run.targets.all()[0].pk).update(parts_done=1)
    not_today = 127 & ~(1 << timezone.now().weekday())
    Run.objects.filter(pk=run.pk).update(
        closes_at=timezone.now(), window_start_hour=0, window_end_hour=1, send_days=not_today
    )
    run = lifecycle.close_window(run)
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.WINDOW_CLOSED)


# The last landing.


def test_a_resume_while_the_last_message_lands_ends_well(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=200)
    run = stage.fire(account, to=2)
    with pumping(stage, account, after=2):
        lifecycle.pause(run, reason=PauseReason.OPERATOR)
        lifecycle.resume(run)
    serve(run, account)
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 2})
    assert doubles(stage.gateway.log, account.credentials["account"]) == {}


def test_a_pause_while_the_last_message_lands_leaves_nothing_to_resume(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=200)
    run = stage.fire(account, to=1)
    with pumping(stage, account, after=1):
        lifecycle.pause(run, reason=PauseReason.OPERATOR)
    run.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 1})


# Attempts.


def test_no_message_is_ever_tried_more_than_five_times(stage: Stage, quick: Settings) -> None:
    """Crashes included: an attempt that had begun counts."""
    account = stage.account()
    stage.behave(account, error_rate=1)
    run = stage.fire(account, to=1)
    for _ in range(2):
        abandon(run, account, begun=True)
        taken = _taken(account)
        rescue.reclaim(taken, idempotent=True, files_inside=False)
        wakeups.end_shift(taken, Rest.soon())
    serve(run, account)
    assert Attempt.objects.filter(run=run).count() == quick.MAX_ATTEMPTS
    assert only_target(run).attempts == quick.MAX_ATTEMPTS


def _taken(account: Account) -> Lease:
    taken = wakeups.take_lease(account.pk)
    assert taken is not None
    return taken
