"""A worker serves fewer accounts at once than it has threads, and those that wait have their turn."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Account
from delivery.engine import pump, wakeups
from delivery.engine.pump import Places
from delivery.engine.wakeups import Rest
from delivery.states import WaitReason
from tests.delivery.stage import Stage, counted, serve


@pytest.mark.parametrize(
    ("threads", "accounts"), [(1, 1), (2, 1), (3, 1), (6, 4), (16, 14), (64, 56), (520, 504)]
)
def test_some_threads_are_kept_for_the_common_tasks(threads: int, accounts: int) -> None:
    places = Places()
    places.share(threads)
    assert [places.take() for _ in range(accounts + 1)] == [True] * accounts + [False]
    assert places.crowded()
    places.leave()
    assert places.take()


def test_there_is_room_for_all_where_no_worker_says_how_many_threads_it_has() -> None:
    places = Places()
    assert all(places.take() for _ in range(1000))
    assert not places.crowded()


def test_a_pump_without_a_place_sends_nothing_and_comes_back_soon(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places()
    places.share(1)
    places.take()
    monkeypatch.setattr(pump, "places", places)
    account = stage.account()
    run = stage.fire(account, to=2)
    Account.objects.update(wake_at=wakeups.watchdog())
    pump.pump(account.pk)
    account.refresh_from_db()
    assert stage.received(account) == []
    assert account.wake_at is not None
    assert account.wake_at <= timezone.now() + wakeups.OFF
    places.leave()
    serve(run, account)
    assert counted(run) == {"sent": 2}


def test_a_shift_that_ends_lets_those_who_wait_for_a_place_go_first(stage: Stage) -> None:
    account = stage.account()
    stage.fire(account, to=2)
    held = wakeups.take_lease(account.pk)
    assert held is not None
    wakeups.knock([account.pk])
    before = timezone.now()
    wakeups.end_shift(held, Rest.soon(), others_first=True)
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at >= before + timedelta(seconds=wakeups.OTHERS_FIRST)
    assert account.waiting_for == WaitReason.GAP
