"""A daily cap that is reached mid-run: what is left is planned for later days, and the run pauses and says so."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from pytest_django import Settings

from accounts.models import Account, Limit, User
from activity.models import Notification
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.permits import Permits
from delivery.engine.tick import tick
from delivery.limiter import Wait
from delivery.models import Run
from delivery.planning import replan
from delivery.states import PauseReason, RunStatus, TargetStatus, WaitReason
from reminders.fire import fire
from tests.delivery.stage import Stage, becomes, counted, noon_zone, serve
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, ReminderFactory

KL = ZoneInfo("Asia/Kuala_Lumpur")
NOON = datetime(2026, 3, 11, 12, tzinfo=KL)
END = datetime(2026, 3, 11, 18, tzinfo=KL)
NEXT_DAY = datetime(2026, 3, 12, 6, tzinfo=KL)

# By the engine: it is noon, and the window from 6 to 18 is open.


def capped(stage: Stage, name: str = "Anna", *, per_day: int | None = 4) -> Account:
    return stage.account(zone=noon_zone(), name=name, limits={"per_day": per_day})


def fired(stage: Stage, *accounts: Account, to: int = 6, **values: Any) -> Run:
    return stage.fire(*accounts, to=to, zone=noon_zone(), window_start_hour=6, window_end_hour=18, **values)


def tomorrow_at_six() -> datetime:
    here = datetime.now(ZoneInfo(noon_zone()))
    return (here + timedelta(days=1)).replace(hour=6, minute=0, second=0, microsecond=0)


def test_a_run_that_waits_for_a_person_pauses_and_says_why_how_far_and_what_to_do(stage: Stage) -> None:
    account = capped(stage)
    run = serve(fired(stage, account), account)
    assert (run.status, run.pause_reason, run.opens_at) == ("paused", "daily_cap", None)
    assert counted(run) == {"sent": 4, "pending": 2}
    slot = tomorrow_at_six()
    assert run.summary == (
        "Daily limit reached: Anna can send no more today. 4 of 6 people delivered, 2 still pending. "
        f"The rest is planned for later days, from {slot:%a} {slot.day} {slot:%b}, 06:00 ({noon_zone()}) on. "
        "Resume it to continue then. To continue today, raise the limit and resume."
    )
    assert set(run.targets.filter(status="pending").values_list("not_before", flat=True)) == {slot}
    assert (
        Notification.objects.get().body
        == f"{run.name}: 4 of 6 people delivered. The daily limit is reached. Tap to resume or cancel."
    )
    account.refresh_from_db()
    assert (account.wake_at, account.waiting_for) == (None, WaitReason.PER_DAY)


def test_a_run_that_resumes_by_itself_says_when(stage: Stage) -> None:
    account = capped(stage)
    run = serve(fired(stage, account, on_close="resume"), account)
    assert (run.status, run.pause_reason, run.opens_at) == ("paused", "daily_cap", tomorrow_at_six())
    assert "It continues then." in run.summary


def test_resumed_after_the_cap_was_raised_it_goes_on_today(stage: Stage) -> None:
    account = capped(stage)
    run = serve(fired(stage, account), account)
    account.limits.update(per_day=10)
    lifecycle.resume(run)
    assert serve(run, account).status == RunStatus.SUCCESS
    assert len(stage.received(account)) == 6


def test_resumed_on_the_full_day_it_waits_for_its_slot_and_sends_nothing(stage: Stage) -> None:
    account = capped(stage)
    run = lifecycle.resume(serve(fired(stage, account), account))
    pump.pump(account.pk)
    run.refresh_from_db()
    assert (run.status, run.opens_at) == (RunStatus.QUEUED, tomorrow_at_six())
    assert len(stage.received(account)) == 4


def test_a_day_that_others_filled_pauses_a_run_before_its_first_message(stage: Stage) -> None:
    account = capped(stage)
    serve(fired(stage, account, to=4), account)
    run = serve(fired(stage, account, to=2), account)
    assert (run.status, run.pause_reason) == ("paused", "daily_cap")
    assert "0 of 2 people delivered, 2 still pending." in run.summary


def test_with_several_accounts_it_goes_on_until_the_last_has_nothing_to_send(stage: Stage) -> None:
    anna, other = capped(stage, per_day=None), capped(stage, "Ben", per_day=None)
    run = fired(stage, anna, other)  # three for each: both have room
    Limit.objects.filter(account=anna).update(per_day=1)
    pump.pump(anna.pk)
    assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING
    run = serve(run, other)
    assert (run.pause_reason, counted(run)) == ("daily_cap", {"sent": 4, "pending": 2})


def test_a_drip_has_its_days_and_is_not_paused_for_them(stage: Stage) -> None:
    account = capped(stage, per_day=1)
    run = fired(stage, account, drip=True, drip_gap_min=1, drip_gap_max=1)
    pump.pump(account.pk)
    run.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.RUNNING, {"sent": 1, "pending": 5})


def test_every_part_counts_against_the_day(stage: Stage) -> None:
    account = capped(stage, per_day=5)
    run = serve(fired(stage, account, to=3, parts=2), account)
    assert (run.pause_reason, counted(run)) == ("daily_cap", {"sent": 2, "pending": 1})


@pytest.mark.usefixtures("quick")
def test_a_day_that_ends_meanwhile_does_not_make_the_next_one_full(
    stage: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limiter answered a millisecond before midnight, and the re-plan is made after it."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ms = int(midnight.timestamp() * 1000)
    answer = Wait(until_ms=ms, reason=WaitReason.PER_DAY, now_ms=ms - 1)
    monkeypatch.setattr(Permits, "take", lambda *_, **__: answer)
    planned: list[datetime] = []
    monkeypatch.setattr(replan, "full_day", lambda *_, now, until: planned.append(now))
    settings.PUMP_SECONDS = 0.2
    account = stage.account(limits={"per_day": 4})
    stage.fire(account, to=1)
    pump.pump(account.pk)
    assert {moment.date() for moment in planned} == {midnight.date() - timedelta(days=1)}


# By the clock: the window closes before the engine came to it.


def at(moment: datetime) -> Any:
    return time_machine.travel(moment, tick=False)


def filled(owner: User, **values: Any) -> Run:
    """A run at noon in Kuala Lumpur: two of five are sent, and the account may send no more today."""
    account = AccountFactory.create(owner=owner, zone="Asia/Kuala_Lumpur")
    LimitFactory.create(account=account, per_day=2)
    given = {"accounts": [account], "recipients": 5, "zone": "Asia/Kuala_Lumpur"}
    run = becomes(
        fire(ReminderFactory.create(owner=owner, **given, **values)), TargetStatus.SENT, TargetStatus.SENT
    )
    AttemptFactory.create_batch(2, test_send=True, account=account, at=NOON)
    replan.full_day(account, "message", now=NOON)
    return run


@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
class TestClosing:
    def test_the_window_closes_on_a_full_day(self, owner: User) -> None:
        with at(NOON) as clock:
            run = filled(owner)
            clock.move_to(END)
            tick()
        run.refresh_from_db()
        assert (run.status, run.pause_reason, run.opens_at) == ("paused", "daily_cap", None)
        assert run.summary == (
            "Delivery window closed at 18:00 (Asia/Kuala_Lumpur). 2 of 5 people delivered, 3 still pending. "
            "The account's daily limit was reached: raise it, or resume tomorrow. "
            "Resume it when you like."
        )

    def test_resumed_in_the_evening_it_goes_on_in_the_morning(self, owner: User) -> None:
        with at(NOON) as clock:
            run = filled(owner)
            clock.move_to(END)
            tick()
            run = lifecycle.resume(run)
            assert (run.status, run.opens_at) == (RunStatus.QUEUED, NEXT_DAY)
            clock.move_to(NEXT_DAY)
            tick()
        run.refresh_from_db()
        assert (run.status, run.closes_at) == (RunStatus.RUNNING, END + timedelta(days=1))

    def test_by_itself_it_goes_on_at_its_slot(self, owner: User) -> None:
        with at(NOON) as clock:
            run = filled(owner, on_close="resume")
            clock.move_to(END)
            tick()
            run.refresh_from_db()
            assert (run.pause_reason, run.opens_at) == ("daily_cap", NEXT_DAY)
            clock.move_to(NEXT_DAY)
            tick()
        assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING

    def test_what_waits_for_another_attempt_keeps_its_time_when_a_run_is_resumed(self, owner: User) -> None:
        with at(NOON):
            run = filled(owner)
            lifecycle.end_full_days(Account.objects.get())
            again = run.targets.filter(status="pending").order_by("pk")[0]
            run.targets.filter(pk=again.pk).update(attempts=1, not_before=NOON + timedelta(minutes=1))
            Account.objects.get().limits.update(per_day=100)
            run = lifecycle.resume(Run.objects.get(pk=run.pk))
        times = list(run.targets.filter(status="pending").order_by("pk").values_list("not_before", flat=True))
        assert times == [NOON + timedelta(minutes=1), NOON, NOON]

    @pytest.mark.parametrize("change", [{"status": "queued"}, {"closes_at": NEXT_DAY + timedelta(hours=1)}])
    def test_only_a_running_run_with_nothing_left_before_the_close_is_paused(
        self, owner: User, change: dict[str, Any]
    ) -> None:
        with at(NOON):
            run = filled(owner)
            Run.objects.filter(pk=run.pk).update(**change)
            lifecycle.end_full_days(Account.objects.get())
        assert Run.objects.get(pk=run.pk).status != RunStatus.PAUSED

    def test_a_lock_of_first_contacts_is_no_full_day(self, owner: User) -> None:
        with at(NOON) as clock:
            run = filled(owner)
            Account.objects.get().limits.update(per_day=None)
            lifecycle.end_full_days(Account.objects.get())
            assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING
            clock.move_to(END)
            tick()
        assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED

    def test_a_person_may_still_cancel_it(self, owner: User) -> None:
        with at(NOON):
            run = filled(owner)
            lifecycle.end_full_days(Account.objects.get())
            run.refresh_from_db()
            assert run.pause_reason == PauseReason.DAILY_CAP
            assert lifecycle.cancel(run).status == RunStatus.PARTIAL
