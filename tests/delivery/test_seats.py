"""A worker serves fewer accounts at once than it has threads, and those that wait have their turn."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Account
from delivery import engine, queues
from delivery.queues import Rest
from delivery.seats import Seats
from delivery.states import WaitReason
from tests.delivery.stage import Stage, counted, serve


@pytest.mark.parametrize(
    ("threads", "accounts"), [(1, 1), (2, 1), (3, 1), (6, 4), (16, 14), (64, 56), (520, 504)]
)
def test_some_threads_are_kept_for_the_common_tasks(threads: int, accounts: int) -> None:
    seats = Seats()
    seats.share(threads)
    assert [seats.take() for _ in range(accounts + 1)] == [True] * accounts + [False]
    assert seats.crowded()
    seats.leave()
    assert seats.take()


def test_there_is_room_for_all_where_no_worker_says_how_many_threads_it_has() -> None:
    seats = Seats()
    assert all(seats.take() for _ in range(1000))
    assert not seats.crowded()


def test_a_pump_without_a_seat_sends_nothing_and_comes_back_soon(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seats = Seats()
    seats.share(1)
    seats.take()
    monkeypatch.setattr(engine, "seats", seats)
    account = stage.account()
    run = stage.fire(account, to=2)
    Account.objects.update(wake_at=queues.watchdog())
    engine.pump(account.pk)
    account.refresh_from_db()
    assert stage.received(account) == []
    assert account.wake_at is not None
    assert account.wake_at <= timezone.now() + queues.OFF
    seats.leave()
    serve(run, account)
    assert counted(run) == {"sent": 2}


def test_a_shift_that_ends_lets_those_who_wait_for_a_seat_go_first(stage: Stage) -> None:
    account = stage.account()
    stage.fire(account, to=2)
    held = queues.take_lease(account.pk)
    assert held is not None
    queues.knock([account.pk])
    before = timezone.now()
    queues.end_shift(held, Rest.soon(), others_first=True)
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at >= before + timedelta(seconds=queues.OTHERS_FIRST)
    assert account.waiting_for == WaitReason.GAP
