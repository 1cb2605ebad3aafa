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
    assert [places.take(1) for _ in range(accounts + 1)] == [True] * accounts + [False]
    assert places.crowded()
    places.leave(1)
    assert places.take(1)


def test_there_is_room_for_all_where_no_worker_says_how_many_threads_it_has() -> None:
    places = Places()
    assert all(places.take(1) for _ in range(1000))
    assert not places.crowded()


MANY, FEW, THIRD = 1, 2, 3  # owners, by how many accounts they have


def full_of_one_owner(threads: int) -> Places:
    places = Places()
    places.share(threads)
    while places.take(MANY):
        pass
    return places


def test_one_owner_has_all_places_while_nobody_else_waits() -> None:
    places = full_of_one_owner(64)
    places.leave(MANY)
    assert places.take(MANY)


def test_the_next_place_goes_to_an_owner_who_waits_and_has_fewer() -> None:
    places = full_of_one_owner(64)
    assert not places.take(FEW)
    places.leave(MANY)
    assert not places.take(MANY)
    assert places.take(FEW)


def test_owners_with_many_accounts_get_equal_shares() -> None:
    places = full_of_one_owner(14)  # 12 places
    for number in range(200):
        places.leave(max(places._taken, key=lambda owner: places._taken[owner]))
        for owner in [MANY, FEW, THIRD, MANY, FEW, THIRD][number % 3 :][:3]:
            places.take(owner)
    assert places._taken.total() == 12
    assert min(places._taken[owner] for owner in (MANY, FEW, THIRD)) >= 3


def test_where_owners_are_more_than_places_who_waits_longest_is_next() -> None:
    places = full_of_one_owner(4)  # two places
    for owner in range(FEW, 12):
        assert not places.take(owner)
    served = []
    for _ in range(10):
        places.leave(max(places._taken, key=lambda owner: places._taken[owner]))
        served += [owner for owner in (MANY, *range(11, 1, -1)) if places.take(owner)]
    assert served == [
        2,
        MANY,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
    ]  # it asked first of all, but has two places at the start


def test_a_place_is_not_kept_for_an_owner_who_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    places = full_of_one_owner(64)
    assert not places.take(FEW)
    places.leave(MANY)
    monkeypatch.setattr(pump, "CROWDED_FOR", 0.0)
    assert places.take(MANY)


def test_a_pump_of_an_owner_who_waits_is_served_beside_an_owner_with_many(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Stage(stage.gateway)
    account, other = stage.account(), elsewhere.account()
    places = Places()
    places.share(1)
    monkeypatch.setattr(pump, "places", places)
    run, others = stage.fire(account, to=2), elsewhere.fire(other, to=2)
    assert places.take(account.owner_id)
    pump.pump(other.pk)
    places.leave(account.owner_id)
    pump.pump(account.pk)  # it had its turn
    assert stage.received(account) == []
    serve(others, other)
    assert counted(others) == {"sent": 2}
    serve(run, account)
    assert counted(run) == {"sent": 2}


def test_a_pump_without_a_place_sends_nothing_and_comes_back_soon(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places()
    places.share(1)
    monkeypatch.setattr(pump, "places", places)
    account = stage.account()
    places.take(account.owner_id)
    run = stage.fire(account, to=2)
    Account.objects.update(wake_at=wakeups.watchdog())
    pump.pump(account.pk)
    account.refresh_from_db()
    assert stage.received(account) == []
    assert account.wake_at is not None
    assert account.wake_at <= timezone.now() + wakeups.OFF
    places.leave(account.owner_id)
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
