"""The pump against the real sandbox, whose own log is the judge of what was sent."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from accounts.recipients import consent
from activity.models import Attempt, Notification
from config.redis.client import client
from delivery import lifecycle
from delivery.engine import claims, pump, wakeups
from delivery.engine.lease import lease_key
from delivery.limiter import Limiter
from delivery.models import Run
from delivery.states import PauseReason, RunStatus, TargetStatus, WaitReason
from delivery.wordings import draw, variant_of
from reminders.fire import fire
from sandbox.witness import doubles, worst_window
from tests.delivery.private_redis import PrivateRedis
from tests.delivery.stage import Stage, abandon, add_up, becomes, counted, only_target, pumping, serve
from tests.factories import PartFactory, RecipientFactory, ReminderFactory


def pump_in_threads(*account_ids: int) -> None:
    """One pump each, all let go at the same moment."""
    barrier = threading.Barrier(len(account_ids))
    errors: list[BaseException] = []

    def work(account_id: int) -> None:
        barrier.wait()
        try:
            pump.pump(account_id)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(account_id,)) for account_id in account_ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# What arrives.


def test_every_target_gets_its_message_once(stage: Stage) -> None:
    account = stage.account()
    run = serve(stage.fire(account, to=7), account)
    assert run.status == RunStatus.SUCCESS
    assert counted(run) == {"sent": 7}
    lines = stage.delivered(account)
    assert {line["to"] for line in lines} == {target.recipient.address for target in run.targets.all()}
    assert len(lines) == 7
    add_up(run)


def test_the_text_is_written_for_each_recipient(stage: Stage) -> None:
    account = stage.account()
    ada = RecipientFactory.create(owner=stage.owner, name="Ada")
    serve(stage.fire(account, to=[ada]), account)
    assert [line["text"] for line in stage.delivered(account)] == ["Hello Ada"]


def test_a_recipient_without_a_value_fails_alone_and_nothing_leaves_for_it(stage: Stage) -> None:
    account = stage.account()
    ada, nobody = (RecipientFactory.create(owner=stage.owner, name=name) for name in ("Ada", ""))
    run = serve(stage.fire(account, to=[ada, nobody]), account)
    assert run.status == RunStatus.PARTIAL
    assert "{{ name }}" in run.targets.get(recipient=nobody).error
    assert [line["to"] for line in stage.delivered(account)] == [ada.address]


def test_every_attempt_is_in_the_ledger(stage: Stage) -> None:
    account = stage.account()
    run = serve(stage.fire(account, to=2, parts=2), account)
    rows = Attempt.objects.filter(run=run)
    assert sorted(rows.values_list("part", "outcome")) == [(0, "sent"), (0, "sent"), (1, "sent"), (1, "sent")]
    ids = {line["id"] for line in stage.delivered(account)}
    assert set(rows.values_list("provider_id", flat=True)) == ids


def test_parts_arrive_in_order_at_every_recipient(stage: Stage) -> None:
    account = stage.account()
    run = serve(stage.fire(account, to=6, parts=3), account)
    assert counted(run) == {"sent": 6}
    for target in run.targets.select_related("recipient"):
        keys = [line["key"] for line in stage.delivered(account) if line["to"] == target.recipient.address]
        assert keys == [f"{target.key}-{part}" for part in range(3)]


def test_a_target_knows_the_id_of_each_of_its_parts(stage: Stage) -> None:
    account = stage.account()
    run = serve(stage.fire(account, to=1, parts=3), account)
    target = only_target(run)
    assert [*(target.earlier_ids or ()), target.provider_id] == [
        line["id"] for line in stage.delivered(account)
    ]

    single = only_target(serve(stage.fire(account, to=1), account))
    assert single.earlier_ids is None


def test_no_more_groups_are_in_flight_than_allowed(stage: Stage) -> None:
    account = stage.account(group_concurrency=2)
    stage.behave(account, latency_ms=40)
    serve(stage.fire(account, to=8), account)
    starts = [line["at"] for line in stage.delivered(account)]
    assert worst_window(starts, 39) <= 2


def test_a_crash_between_parts_goes_on_with_the_next_part(stage: Stage) -> None:
    account = stage.account(idempotent=False)
    run = stage.fire(account, to=1, parts=3)
    abandon(run, account, begun=False)
    run.targets.update(parts_done=2)
    serve(run, account)
    assert [line["key"] for line in stage.delivered(account)] == [f"{only_target(run).key}-2"]


# One account, one pump.


def test_five_pumps_of_one_account_at_once_send_nothing_twice(stage: Stage) -> None:
    account = stage.account(idempotent=False)
    run = stage.fire(account, to=20)
    pump_in_threads(*[account.pk] * 5)
    serve(run, account)
    assert counted(run) == {"sent": 20}
    assert len(stage.delivered(account)) == 20
    assert doubles(stage.gateway.log, account.credentials["account"]) == {}


def test_two_accounts_send_side_by_side(stage: Stage) -> None:
    accounts = [stage.account(), stage.account()]
    for account in accounts:
        stage.behave(account, latency_ms=60)
    run = stage.fire(*accounts, to=12)
    pump_in_threads(*(account.pk for account in accounts))
    first, second = ([line["at"] for line in stage.delivered(account)] for account in accounts)
    assert len(first) == len(second) == 6
    assert max(first[0], second[0]) < min(first[-1], second[-1]), "one waited for the other"
    assert counted(run) == {"sent": 12}


def test_a_pump_that_finds_the_lease_taken_ends_at_once_and_knocks(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    run = stage.fire(account)
    held = wakeups.take_lease(account.pk)
    assert held is not None
    pump.pump(account.pk)
    assert stage.received(account) == []
    redis.delete(_queue(account))
    wakeups.end_shift(held, wakeups.Rest(until=None, reason=WaitReason.NOTHING_TO_SEND))
    assert redis.llen(_queue(account)) == 1, "whoever knocked gets a pump"
    serve(run, account)


def test_the_run_with_the_higher_priority_goes_first_then_the_one_fired_first(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    second, third = stage.fire(account, to=2), stage.fire(account, to=2)
    first = stage.fire(account, to=2, priority=5)
    for run in (first, second, third):
        serve(run, account)
    order = [line["key"].split("-")[0] for line in stage.delivered(account)]
    assert order == [run.key.hex for run in (first, second, third) for _ in range(2)]


def test_a_target_planned_for_later_does_not_hold_up_another_run(stage: Stage) -> None:
    account = stage.account()
    later, now = stage.fire(account, to=1, priority=5), stage.fire(account, to=1)
    later.targets.update(not_before=timezone.now() + timedelta(hours=1))
    pump.pump(account.pk)
    assert (counted(later), counted(now)) == ({"pending": 1}, {"sent": 1})
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.NOT_BEFORE
    assert account.wake_at == later.targets.get().not_before


# What people do meanwhile.


def test_a_pause_takes_effect_before_the_next_message(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=30)
    run = stage.fire(account, to=30)
    with pumping(stage, account, after=3):
        lifecycle.pause(run, reason=PauseReason.OPERATOR)
        paused_at = datetime.now(UTC).timestamp() * 1000
    assert [line for line in stage.received(account) if line["at"] > paused_at + 5] == []
    assert counted(run)["pending"] >= 25
    add_up(run)
    serve(lifecycle.resume(run), account)
    assert counted(run) == {"sent": 30}
    assert len(stage.delivered(account)) == 30


def test_a_canceled_run_lets_what_is_in_the_air_land_and_then_ends(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=100)
    run = stage.fire(account, to=10)
    with pumping(stage, account, after=2):
        lifecycle.cancel(run)
    run.refresh_from_db()
    assert run.status == RunStatus.PARTIAL
    assert run.sent == len(stage.delivered(account))
    assert run.sent + run.skipped == 10
    assert set(run.targets.filter(status="skipped").values_list("error", flat=True)) == {lifecycle.CANCELED}
    add_up(run)


def test_an_opt_out_in_the_middle_of_a_run_takes_effect(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=30)
    people = stage.recipients(10)
    run = stage.fire(account, to=people)
    with pumping(stage, account, after=2):
        consent.opt_out(people[-1], how="Wrote STOP.")
    serve(run, account)
    assert counted(run) == {"sent": 9, "skipped": 1}
    assert people[-1].address not in {line["to"] for line in stage.received(account)}
    assert run.targets.get(recipient=people[-1]).error == "opted out"


def test_an_edit_of_the_reminder_does_not_change_a_run_in_flight(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)
    run.reminder.parts.update(text="Something else")
    run.reminder.recipients.clear()
    serve(run, account)
    assert {line["text"][:5] for line in stage.delivered(account)} == {"Hello"}
    assert counted(run) == {"sent": 2}


def test_nothing_is_sent_for_an_account_that_a_person_paused(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account)
    lifecycle.pause_account(account)
    pump.pump(account.pk)
    assert stage.received(account) == []
    add_up(run)


# What the service answers.


def test_a_refusal_fails_the_target_at_once(stage: Stage) -> None:
    account = stage.account()
    people = stage.recipients(3)
    stage.behave(account, reject=[person.address for person in people[:2]])
    run = serve(stage.fire(account, to=people), account)
    assert run.status == RunStatus.PARTIAL
    assert counted(run) == {"sent": 1, "failed": 2}
    assert len(stage.received(account)) == 3
    assert "does not accept" in run.targets.get(recipient=people[0]).error


def test_a_number_that_does_not_exist_is_never_written_to(stage: Stage) -> None:
    account = stage.account()
    ada, nobody = (
        RecipientFactory.create(owner=stage.owner, kind="person", address=address, name="Ada")
        for address in ("+60123456789", "+60123456780")
    )
    stage.behave(account, unknown=[nobody.address])
    run = serve(stage.fire(account, to=[ada, nobody]), account)
    assert counted(run) == {"sent": 1, "failed": 1}
    assert [line["to"] for line in stage.received(account)] == [ada.address]
    assert "knows nobody" in run.targets.get(recipient=nobody).error


def test_whether_a_number_exists_is_asked_before_the_first_message_only(stage: Stage) -> None:
    account = stage.account()
    ada = RecipientFactory.create(owner=stage.owner, kind="person", address="+60123456789", name="Ada")
    serve(stage.fire(account, to=[ada]), account)
    stage.behave(account, unknown=[ada.address])
    run = serve(stage.fire(account, to=[ada]), account)
    assert len(stage.received(account)) == 2, "what the service then says counts"
    assert counted(run) == {"failed": 1}


def test_a_failure_of_the_service_is_tried_again_after_longer_and_longer_waits(
    stage: Stage, quick: Settings
) -> None:
    quick.TROUBLE_STREAK = 100  # else five in a row hold the account: tests/delivery/engine/test_trouble.py
    account = stage.account()
    stage.behave(account, error_rate=1)
    run = serve(stage.fire(account, to=1), account)
    assert run.status == RunStatus.FAILED
    assert len(stage.received(account)) == 5
    assert "gave up after 5 attempts" in only_target(run).error
    times = [line["at"] for line in stage.received(account)]
    waits = [after - before for before, after in pairwise(times)]
    assert all(wait >= 20 * 2**n for n, wait in enumerate(waits)), waits


def test_a_failure_with_the_last_target_is_tried_again_in_the_same_shift(
    stage: Stage, quick: Settings
) -> None:
    quick.TROUBLE_STREAK = 100
    account = stage.account()
    stage.behave(account, error_rate=1, latency_ms=30)
    run = stage.fire(account, to=1)
    pump.pump(account.pk)
    assert len(stage.received(account)) == 5
    assert counted(run) == {"failed": 1}


def test_a_rate_limit_answer_holds_the_account_and_slows_it_down(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, rate_limit=3)
    run = stage.fire(account, to=6)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert len(stage.delivered(account)) == 3
    assert len(stage.received(account)) == 4, "one answer is enough to stop"
    assert 15 < account.slow_factor * 0.001 < 30, "three per minute: one every 20 s, at a usual gap of 1 ms"
    assert (account.trouble_kind, account.trouble_count) == ("rate_limited", 1)
    assert account.held_until is not None
    assert account.held_until > timezone.now()
    assert account.waiting_for == WaitReason.SLOWED
    assert counted(run) == {"sent": 3, "pending": 3}


def test_a_slowed_account_recovers_step_by_step_even_over_several_pumps(
    stage: Stage, quick: Settings
) -> None:
    quick.SLOW_DOWN_RECOVERY_SENDS = 4
    account = stage.account(slow_factor=1.5 * 1.5)
    serve(stage.fire(account, to=3), account)
    account.refresh_from_db()
    assert account.slow_factor == 1.5 * 1.5
    serve(stage.fire(account, to=3), account)
    account.refresh_from_db()
    assert account.slow_factor == 1.5
    serve(stage.fire(account, to=4), account)
    account.refresh_from_db()
    assert account.slow_factor == 1


def test_a_hold_is_kept_when_redis_forgets_it(stage: Stage) -> None:
    account = stage.account(held_until=timezone.now() + timedelta(hours=1))
    run = stage.fire(account)
    pump.pump(account.pk)
    assert stage.received(account) == []
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.SLOWED
    assert counted(run) == {"pending": 3}


def test_a_hold_that_an_answer_to_another_action_asked_for_is_kept(stage: Stage) -> None:
    account = stage.account()
    serve(stage.fire(account, to=1), account)  # Redis knows this action, and nothing of the hold
    Account.objects.filter(pk=account.pk).update(held_until=timezone.now() + timedelta(minutes=1))
    run = stage.fire(account, to=1)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert (counted(run), account.waiting_for) == ({"pending": 1}, WaitReason.SLOWED)


def test_an_account_that_is_not_connected_is_held_and_tried_again(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, not_connected=True)
    run = stage.fire(account, to=2)
    with pumping(stage, account, after=2):
        stage.behave(account, not_connected=False)
    serve(run, account)
    assert run.status == RunStatus.SUCCESS
    account.refresh_from_db()
    assert account.slow_factor == 1, "a phone that was away is no reason to go slower"


def test_an_account_that_stays_away_is_offline_after_a_while_and_its_owner_is_told(
    stage: Stage, quick: Settings
) -> None:
    quick.TROUBLE_OFFLINE_MINUTES = 0.3 / 60
    account = stage.account()
    stage.behave(account, not_connected=True)
    run = serve(stage.fire(account, to=2), account)
    account.refresh_from_db()
    assert account.status == Account.Status.OFFLINE
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_OFFLINE)
    assert counted(run) == {"pending": 2}
    assert Notification.objects.filter(owner=stage.owner, kind="account").count() == 1
    assert account.waiting_for == WaitReason.ACCOUNT_STOPPED
    stage.behave(account, not_connected=False)
    lifecycle.start_account(account)
    serve(run, account)
    assert run.status == RunStatus.SUCCESS


def test_an_account_that_is_blocked_is_flagged_and_its_runs_pause(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, ban_above_per_minute=2)
    run, other = stage.fire(account, to=5), stage.fire(account, to=1)
    serve(run, account)
    account.refresh_from_db()
    other.refresh_from_db()
    assert account.status == Account.Status.FLAGGED
    assert "banned" in account.status_reason
    assert {run.pause_reason, other.pause_reason} == {PauseReason.ACCOUNT_FLAGGED}
    assert counted(run) == {"sent": 2, "pending": 3}
    assert len(stage.received(account)) == 3
    assert account.wake_at is None, "a stopped account is not woken"
    assert Notification.objects.filter(owner=stage.owner, kind="account").count() == 1


def test_an_account_with_unusable_credentials_goes_offline_and_says_why(stage: Stage) -> None:
    account = stage.account()
    account.credentials = {"base_url": "not an address", "account": "a", "token": "t"}
    account.save()
    run = serve(stage.fire(account), account)
    account.refresh_from_db()
    assert account.status == Account.Status.OFFLINE
    assert "address" in account.status_reason
    assert run.pause_reason == PauseReason.ACCOUNT_OFFLINE


@pytest.mark.parametrize("fault", ["cut", "error_rate_after", "garbage"])
def test_an_answer_nobody_heard_is_asked_for_again_with_the_same_key(stage: Stage, fault: str) -> None:
    account = stage.account()
    stage.behave(account, **{fault: 0.5, "seed": 7})
    run = serve(stage.fire(account, to=8), account)
    assert run.status == RunStatus.SUCCESS
    assert len(stage.received(account)) > 8
    assert len(stage.delivered(account)) == 8
    assert {line["key"] for line in stage.received(account)} == {f"{t.key}-0" for t in run.targets.all()}


@pytest.mark.parametrize("fault", ["cut", "error_rate_after", "garbage"])
def test_without_keys_it_is_never_sent_again_by_itself(stage: Stage, fault: str) -> None:
    account = stage.account(idempotent=False)
    stage.behave(account, **{fault: 1})
    run = serve(stage.fire(account, to=3), account)
    assert counted(run) == {"unconfirmed": 3}
    assert run.status == RunStatus.PARTIAL
    assert len(stage.received(account)) == 3
    pump.pump(account.pk)
    assert len(stage.received(account)) == 3


def test_a_gateway_that_never_answers_leaves_the_message_unconfirmed(stage: Stage, quick: Settings) -> None:
    quick.SEND_TIMEOUT_SECONDS = 0.1
    account = stage.account(idempotent=False)
    stage.behave(account, hang=1)
    run = serve(stage.fire(account, to=2), account)
    assert counted(run) == {"unconfirmed": 2}
    assert len(stage.received(account)) == 2


# Errors.


def test_the_breaker_pauses_a_run_from_ten_attempts_above_a_fifth(stage: Stage) -> None:
    account = stage.account()
    people = stage.recipients(40)
    stage.behave(account, reject=[person.address for person in people], latency_ms=15, jitter_ms=30)
    run = serve(stage.fire(account, to=people), account)
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ERROR_RATE)
    assert 10 <= run.failed <= 12, "those in flight still land"
    assert len(stage.received(account)) == run.failed
    assert "Too many errors" in run.summary
    assert Notification.objects.filter(owner=stage.owner, kind="paused").count() == 1
    add_up(run)


def test_the_breaker_leaves_a_run_alone_at_exactly_a_fifth(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    people = stage.recipients(20)
    refused = {person.address for number, person in enumerate(people) if number % 5 == 4}
    stage.behave(account, reject=sorted(refused))
    run = serve(stage.fire(account, to=people), account)
    assert run.status == RunStatus.PARTIAL
    assert counted(run) == {"sent": 16, "failed": 4}


# Limits.


def test_no_sliding_minute_has_more_than_the_limit(stage: Stage, quick: Settings) -> None:
    """The minute lasts one second here."""
    quick.MINUTE_SECONDS = 1
    account = stage.account(per_minute=20)
    serve(stage.fire(account, to=30), account)
    times = [line["at"] for line in stage.received(account)]
    assert len(times) == 30
    assert worst_window(times, 1000) <= 20


def test_what_a_slow_database_held_up_does_not_bunch_not_even_in_the_next_shift(
    stage: Stage, quick: Settings
) -> None:
    gap = timedelta(seconds=0.15)
    quick.HORIZON_SECONDS = 0.5
    account = stage.account(group_concurrency=10, limits={"gap_min": 0.15, "gap_max": 0.15})
    run = stage.fire(account, to=12)
    with pumping(stage, account, after=3), transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)  # nothing can be recorded meanwhile
        time.sleep(0.5)
    serve(run, account)
    begun = Attempt.objects.filter(run=run).order_by("at").values_list("at", flat=True)
    assert min(after - before for before, after in pairwise(begun)) >= gap


def test_a_limiter_that_forgot_is_rebuilt_and_nothing_bursts(
    stage: Stage, quick: Settings, redis: Redis
) -> None:
    quick.MINUTE_SECONDS = 1
    account = stage.account(per_minute=20)
    run = stage.fire(account, to=40)
    with pumping(stage, account, after=15):
        redis.flushdb()
    serve(run, account)
    times = [line["at"] for line in stage.received(account)]
    assert len(times) == 40
    assert worst_window(times, 1000) <= 20


def test_permits_for_parts_to_come_count_when_the_limiter_forgets(
    stage: Stage, quick: Settings, redis: Redis
) -> None:
    """The minute lasts two seconds here, and the log was evicted while the lease stayed."""
    quick.MINUTE_SECONDS = 2
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 100
    account = stage.account(per_minute=12)
    run = stage.fire(account, to=8, parts=3)
    with pumping(stage, account, after=2):
        Limiter(redis).forget(account.pk)
    serve(run, account)
    times = [line["at"] for line in stage.received(account)]
    assert len(times) == 24
    assert worst_window(times, 2000) <= 12


def test_a_daily_cap_ends_the_day_and_says_so(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 4})
    run = stage.fire(account, to=6)
    pump.pump(account.pk)
    assert counted(run) == {"sent": 4, "pending": 2}
    assert len(stage.received(account)) == 4
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.PER_DAY
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    assert account.wake_at == account.waiting_until
    assert account.wake_at is not None
    assert abs(account.wake_at - tomorrow) < timedelta(seconds=2)


def test_what_a_full_day_cannot_take_is_planned_for_the_next_and_the_run_says_so(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 4})
    run = stage.fire(account, to=6)
    pump.pump(account.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert "4" in run.summary
    left = run.targets.filter(status=TargetStatus.PENDING)
    assert all(target.not_before > timezone.now() + timedelta(seconds=1) for target in left)
    pump.pump(account.pk)
    assert len(stage.received(account)) == 4


def test_a_drip_that_an_outage_made_overdue_is_spread_again(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=5, drip=True, drip_gap_min=300, drip_gap_max=600)
    run.targets.update(not_before=timezone.now() - timedelta(hours=1))
    pump.pump(account.pk)
    assert len(stage.received(account)) <= 1
    times = sorted(run.targets.filter(status=TargetStatus.PENDING).values_list("not_before", flat=True))
    assert all(after - before >= timedelta(seconds=300) for before, after in pairwise(times))


def test_the_daily_cap_holds_when_redis_forgets(stage: Stage, redis: Redis) -> None:
    account = stage.account(limits={"per_day": 4})
    stage.fire(account, to=6)
    for _ in range(3):
        pump.pump(account.pk)
        redis.flushdb()
    assert len(stage.received(account)) == 4


def test_a_message_of_more_parts_than_a_limit_allows_pauses_its_run_with_a_sentence(stage: Stage) -> None:
    account = stage.account(per_minute=2)
    run = serve(stage.fire(account, to=2, parts=3), account)
    assert run.status == RunStatus.PAUSED
    assert "3" in run.summary
    assert stage.received(account) == []


def test_without_redis_nothing_is_sent_and_the_account_says_why(
    stage: Stage, settings: Settings, quick: Settings
) -> None:
    quick.HORIZON_SECONDS = 0.1
    account = stage.account(limits={"gap_min": 0.05, "gap_max": 0.05})
    run = stage.fire(account, to=20)
    usual = settings.REDIS_URL
    with PrivateRedis() as server:
        settings.REDIS_URL = f"unix://{server.client().connection_pool.connection_kwargs['path']}"
        client.cache_clear()
        try:
            with pumping(stage, account, after=2):
                server.stop()
        finally:
            settings.REDIS_URL = usual  # first: whoever announces beside this asks for a client at any moment
            client.cache_clear()
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.LIMITER_AWAY
    assert account.wake_at is not None
    assert len(stage.delivered(account)) < 20
    assert counted(run)["sent"] == len(stage.delivered(account)), "what had left is recorded all the same"
    add_up(run)


# The window.


def test_the_last_message_is_received_before_the_window_closes(stage: Stage, quick: Settings) -> None:
    quick.PUMP_SECONDS = 2
    account = stage.account(limits={"gap_min": 0.05, "gap_max": 0.05})
    run = stage.fire(account, to=40)
    closes_at = datetime.now(UTC) + timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(closes_at=closes_at)
    pump.pump(account.pk)
    times = [line["at"] for line in stage.received(account)]
    assert 0 < len(times) < 40
    assert max(times) < closes_at.timestamp() * 1000
    assert counted(run) == {"sent": len(times), "pending": 40 - len(times)}


def test_a_run_that_waits_for_its_window_is_not_served(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account)
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.QUEUED, opens_at=timezone.now() + timedelta(hours=1)
    )
    pump.pump(account.pk)
    assert stage.received(account) == []


# The end of a shift.


def test_work_that_is_left_has_a_wake_up_and_none_has_none(stage: Stage, quick: Settings) -> None:
    quick.PUMP_SECONDS = 0.3
    account = stage.account(limits={"gap_min": 0.1, "gap_max": 0.1})
    run = stage.fire(account, to=6)
    pump.pump(account.pk)
    assert counted(run)["pending"] > 0
    assert Account.objects.get().wake_at is not None
    quick.PUMP_SECONDS = 5
    serve(run, account)
    account.refresh_from_db()
    assert account.wake_at is None
    assert account.waiting_for == WaitReason.NOTHING_TO_SEND


def test_a_shift_with_nothing_left_ends_at_once(stage: Stage, quick: Settings) -> None:
    """Else it would end with its time, and not know what it waits for; the next run would wait for its lease."""
    quick.PUMP_SECONDS = 1
    quick.LEASE_SECONDS = 60
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=30)
    run = stage.fire(account, to=10)
    with pumping(stage, account, after=2):
        lifecycle.cancel(run)
    account.refresh_from_db()
    assert account.waiting_for == WaitReason.NOTHING_TO_SEND


def test_a_long_gap_ends_the_shift_and_arms_the_wake_up(stage: Stage) -> None:
    account = stage.account(limits={"gap_min": 120, "gap_max": 120})
    run = stage.fire(account, to=2)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert counted(run) == {"sent": 1, "pending": 1}
    assert account.waiting_for == WaitReason.GAP
    assert account.wake_at is not None
    assert timedelta(seconds=100) < account.wake_at - timezone.now() <= timedelta(seconds=120)


def test_a_worker_that_stops_finishes_what_is_in_the_air_and_takes_nothing_new(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, latency_ms=50)
    run = stage.fire(account, to=20)
    try:
        with pumping(stage, account, after=2):
            pump.stopping.set()
    finally:
        pump.stopping.clear()
    assert counted(run)["sent"] == len(stage.delivered(account)) < 20
    assert "sending" not in counted(run)
    add_up(run)


def test_an_error_in_a_shift_releases_the_lease_and_records_what_left(
    stage: Stage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = stage.account(group_concurrency=2)
    stage.behave(account, latency_ms=80)
    run = stage.fire(account, to=6)
    real, asked = claims.next_run, count()

    def broken(*args: Any, **options: Any) -> claims.NextRun | None:
        if next(asked) == 0:
            return real(*args, **options)
        while not stage.received(account):  # some messages are under way
            time.sleep(0.01)
        raise RuntimeError("a bug")

    monkeypatch.setattr(claims, "next_run", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        pump.pump(account.pk)
    assert counted(run)["sent"] == len(stage.delivered(account)) > 0
    assert not redis.exists(lease_key(account.pk))
    monkeypatch.setattr(claims, "next_run", real)
    serve(run, account)
    assert counted(run) == {"sent": 6}
    assert len(stage.delivered(account)) == 6


@contextmanager
def refusing_what_was_sent() -> Iterator[None]:
    """A database that does not take the ledger's rows of messages that were sent."""
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE activity_attempt ADD CONSTRAINT full_disk CHECK (outcome <> 'sent') NOT VALID"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE activity_attempt DROP CONSTRAINT full_disk")


def test_a_shift_that_cannot_record_ends_and_leaves_what_it_sent_in_doubt(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            pump.pump(account.pk)
        except IntegrityError as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    with refusing_what_was_sent():
        thread.start()
        thread.join(30)
    assert not thread.is_alive(), "it waits for what has landed already"
    assert errors, "and says why"
    assert client().get(lease_key(account.pk)) is None
    assert serve(run, account).status == RunStatus.SUCCESS
    assert doubles(stage.gateway.log, account.credentials["account"]) == {}
    add_up(run)


def test_a_run_whose_pump_died_before_it_could_settle_is_settled_by_the_next(stage: Stage) -> None:
    account = stage.account()
    run = becomes(stage.fire(account, to=2), TargetStatus.SENT, TargetStatus.SENT)
    assert (run.status, run.pending, run.sending) == (RunStatus.RUNNING, 0, 0)
    pump.pump(account.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCESS


def test_a_canceled_run_whose_pump_died_before_it_could_settle_is_settled_by_the_next(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)
    abandon(run, account, begun=True)
    lifecycle.cancel(run)
    run.targets.filter(status=TargetStatus.SENDING).update(status=TargetStatus.PENDING, begun_at=None)
    Run.objects.filter(pk=run.pk).update(sending=0, pending=1)
    pump.pump(account.pk)
    run.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.CANCELED, {"skipped": 2})


def test_a_pump_of_an_account_that_does_not_exist_says_so(stage: Stage, redis: Redis) -> None:
    with pytest.raises(LookupError):
        pump.pump(999_999_999)
    assert not redis.exists(lease_key(999_999_999))


def test_a_quick_pause_and_resume_between_parts_sends_no_part_twice(stage: Stage, quick: Settings) -> None:
    """The target is claimed again while its next part is still on the agenda from before."""
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 500
    quick.HORIZON_SECONDS = 0.1
    account = stage.account(idempotent=False, limits={"gap_min": 0.15, "gap_max": 0.15})
    run = stage.fire(account, to=3, parts=4)
    with pumping(stage, account, after=1):
        while not Attempt.objects.filter(run=run).exists():
            time.sleep(0.01)
        lifecycle.pause(run, reason=PauseReason.OPERATOR)
        lifecycle.resume(run)
    serve(run, account)
    assert counted(run) == {"sent": 3}
    assert doubles(stage.gateway.log, account.credentials["account"]) == {}
    assert len(stage.delivered(account)) == 12


def _queue(account: Account) -> str:
    return f"paceline:queue:{wakeups.queue_name(account.pk)}"


def test_targets_left_behind_by_a_dead_pump_are_finished_by_the_next(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=3)
    abandon(run, account, begun=False)
    abandon(run, account, begun=True)
    serve(run, account)
    assert counted(run) == {"sent": 3}
    assert run.targets.filter(status=TargetStatus.SENT).count() == 3


def test_every_attempt_at_a_target_says_the_same_wording(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, error_rate=0.3, seed=7)
    wordings = ["A {1|2|3} {{ name }}", "B {1|2|3} {{ name }}"]
    people = stage.recipients(12)
    reminder = ReminderFactory.create(
        owner=stage.owner,
        accounts=[account],
        recipients=people,
        parts=0,
        window_start_hour=0,
        window_end_hour=24,
    )
    PartFactory.create(reminder=reminder, text=wordings[0], other_wordings=wordings[1:])
    run = serve(fire(reminder), account)
    stage.behave(account, error_rate=0.0)
    said = {
        target.recipient.address: (
            draw(wordings, key=target.key, part=0).replace("{{ name }}", target.recipient.name),
            variant_of(2, key=target.key),
        )
        for target in run.targets.select_related("recipient")
    }
    lines = stage.received(account)
    assert len(lines) > 12  # some were tried again
    assert {(line["to"], line["text"]) for line in lines} == {(to, text) for to, (text, _) in said.items()}
    rows = Attempt.objects.filter(run=run).values_list("target__recipient__address", "variant")
    assert {(to, variant) for to, variant in rows} == {(to, variant) for to, (_, variant) in said.items()}
    assert {variant for _, variant in said.values()} == {0, 1}


def test_the_braces_of_a_message_from_before_there_were_choices_are_sent(stage: Stage) -> None:
    account = stage.account()
    reminder = ReminderFactory.create(
        owner=stage.owner, accounts=[account], recipients=1, parts=0, window_start_hour=0, window_end_hour=24
    )
    PartFactory.create(reminder=reminder, text="{a|b}", other_wordings=None)
    serve(fire(reminder), account)
    assert [line["text"] for line in stage.delivered(account)] == ["{a|b}"]
