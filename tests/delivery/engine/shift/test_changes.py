"""Shifts hear within a look what changed under them, and what the engine itself writes tells them nothing."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, Limit
from config.redis.client import client
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.lease import AHEAD_MS, ahead_key
from delivery.engine.shift import changes
from delivery.engine.shift.changes import Changes, Seen, look_at
from delivery.models import Run
from delivery.recovery import stop_sending
from delivery.states import PauseReason
from tests.delivery.engine.test_last_look import until
from tests.delivery.stage import Stage, add_up, counted
from tests.factories import LimitFactory


def seen(account: Account) -> Seen:
    return look_at([account.pk])[account.pk]


def lower(account: Account) -> None:
    Limit.objects.filter(account=account).update(per_minute=1)


def add_a_limit(account: Account) -> None:
    LimitFactory.create(account=account, action="inmail", per_day=1)


def change(**values: Any) -> Callable[[Account], object]:
    return lambda account: Account.objects.filter(pk=account.pk).update(**values)


OF_THE_ACCOUNT: dict[str, Callable[[Account], object]] = {
    "a lower limit": lower,
    "another limit": add_a_limit,
    "its status": change(status="paused"),
    "its zone": change(zone="Asia/Tokyo"),
    "its profile": change(profile="whatsapp_careful"),
    "its messages at once": change(group_concurrency=1),
    "its service": change(credentials={"base_url": "http://127.0.0.1:1"}),
    "a day of its warm-up": change(warmup_clean_days=3),
    "archived": change(archived_at=timezone.now()),
}


@pytest.mark.parametrize("what", OF_THE_ACCOUNT)
def test_what_a_shift_reads_at_its_start_is_part_of_the_fingerprint(stage: Stage, what: str) -> None:
    account = stage.account()
    stage.fire(account)
    before = seen(account)
    OF_THE_ACCOUNT[what](account)
    after = seen(account)
    assert after.account != before.account
    assert after.work == before.work


OF_THE_RUNS: dict[str, Callable[[Run], object]] = {
    "paused": lambda run: lifecycle.pause(run, reason=PauseReason.OPERATOR),
    "canceled": lifecycle.cancel,
    "another priority": lambda run: Run.objects.filter(pk=run.pk).update(priority=9),
    "another end of its window": lambda run: Run.objects.filter(pk=run.pk).update(
        closes_at=timezone.now() + timedelta(minutes=1)
    ),
    "a stop of all sending": lambda _: stop_sending.stop(None, reason="a test"),
}


@pytest.mark.parametrize("what", OF_THE_RUNS)
def test_what_happens_to_its_runs_is_part_of_the_fingerprint(stage: Stage, what: str) -> None:
    account = stage.account()
    run = stage.fire(account)
    before = seen(account)
    OF_THE_RUNS[what](run)
    after = seen(account)
    assert after.work != before.work
    assert after.account == before.account


def test_a_new_run_is_part_of_the_fingerprint(stage: Stage) -> None:
    account = stage.account()
    stage.fire(account)
    before = seen(account)
    stage.fire(account)
    assert seen(account).work != before.work


def test_what_the_engine_writes_is_no_change(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account)
    before = seen(account)
    change(fence=7, wake_at=timezone.now(), waiting_for="gap", trouble_count=1, slow_factor=2, clean_sends=3)(
        account
    )
    Run.objects.filter(pk=run.pk).update(pending=0, sending=3)
    assert seen(account) == before


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch, quick: Settings) -> Settings:
    monkeypatch.setattr(changes, "EVERY", 0.05)
    quick.PUMP_SECONDS = quick.HORIZON_SECONDS = 60
    return quick


def pumped(account: Account) -> threading.Thread:
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    return thread


def ends(thread: threading.Thread) -> None:
    thread.join(50)
    assert not thread.is_alive()


LOWERED: dict[str, Callable[[Account], object]] = {
    "a lower limit": lambda account: Limit.objects.filter(account=account).update(gap_min=60, gap_max=60),
    "a person who waits": lambda account: client().set(ahead_key(account.pk), 1, px=AHEAD_MS),
}


@pytest.mark.parametrize("what", LOWERED)
def test_a_shift_ends_and_gives_back_what_it_holds(stage: Stage, often: Settings, what: str) -> None:
    account = stage.account(limits={"gap_min": 0.6, "gap_max": 0.6})
    run = stage.fire(account, to=80)
    thread = pumped(account)
    until(lambda: counted(run).get("sent"))
    assert counted(run)["sending"] > 10, "claimed for a minute ahead"
    LOWERED[what](account)
    ends(thread)
    left = counted(run)
    assert left["sent"] + left["pending"] == 80
    assert left["pending"] > 60
    add_up(run)
    if what == "a lower limit":
        pump.pump(account.pk)
        assert counted(run)["sent"] <= left["sent"] + 1, "the new gap counts from the last message"


def test_a_run_of_a_higher_priority_goes_first_although_a_minute_is_claimed(
    stage: Stage, often: Settings
) -> None:
    account = stage.account(limits={"gap_min": 0.6, "gap_max": 0.6})
    long = stage.fire(account, to=90)
    thread = pumped(account)
    until(lambda: counted(long).get("sent"))
    urgent = stage.fire(account, to=1)
    Run.objects.filter(pk=urgent.pk).update(priority=9)
    until(lambda: counted(urgent).get("sent"))
    assert counted(long)["sent"] < 60
    lifecycle.cancel(long)
    ends(thread)
    add_up(long)


def test_a_paused_run_gives_back_its_claims_while_its_account_waits_for_a_gap(
    stage: Stage, often: Settings
) -> None:
    account = stage.account(limits={"gap_min": 9, "gap_max": 9})
    run = stage.fire(account, to=5)
    thread = pumped(account)
    until(lambda: counted(run).get("sent"))
    lifecycle.pause(run, reason=PauseReason.OPERATOR)
    ends(thread)
    assert counted(run) == {"sent": 1, "pending": 4}


class Slow:
    """The part of `Batches` that a look uses; it answers when it may."""

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def ask(self, _: object) -> tuple[dict[int, Seen], set[int]]:
        self.asked.set()
        await self.may_answer.wait()
        return {1: Seen(account=2, work=2)}, set()


def test_a_shift_that_starts_during_a_look_is_told_nothing_by_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "EVERY", 0.0)
    told, heard = list[str](), asyncio.Event()

    def hear(name: str) -> dict[str, Any]:
        def note() -> None:
            told.append(name)
            heard.set()

        return {"ended": note, "moved": note}

    async def scene() -> None:
        slow = Slow()
        looks = Changes(slow)  # type: ignore[arg-type]
        old = Seen(account=1, work=1)
        with looks.told(1, old, **hear("before")):
            await slow.asked.wait()
            with looks.told(1, old, **hear("during")):
                slow.may_answer.set()
                await heard.wait()
                assert told == ["before"]

    asyncio.run(asyncio.wait_for(scene(), 10))


def test_accounts_that_wait_for_a_thread_get_it_after_a_minute(
    stage: Stage, often: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.engine.shift.shift.AT_LEAST", 0.5)
    monkeypatch.setattr(pump.places, "_refused_at", time.monotonic())
    account = stage.account(limits={"gap_min": 0.6, "gap_max": 0.6})
    run = stage.fire(account, to=80)
    ends(pumped(account))
    assert counted(run)["pending"] > 60
