"""Firing is shared among owners: many due reminders or starts of one hold up nobody else's."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from config.long_tasks import firings
from delivery.lifecycle import WrongStateError
from delivery.models import Run
from reminders import due, fire
from reminders.models import Reminder
from tests.factories import ReminderFactory
from tests.reminders.test_due import NINE, at, once, tick

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture(autouse=True)
def places(settings: Settings, redis: Redis) -> Iterator[None]:
    settings.DATABASE_POOL = 4
    for each in (firings, fire.starts):
        each.cache_clear()
    yield
    for each in (firings, fire.starts):
        each.cache_clear()


def due_reminder(owner: User) -> Reminder:
    """Due at nine, scheduled two hours before."""
    return once(owner, recipients=1)


def test_owners_take_turns_in_a_batch(owner: User, stranger: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "BATCH", 4)
    for _ in range(6):
        due_reminder(owner)
    last = due_reminder(stranger)
    with at(NINE):
        chosen = due._chosen(without=())
    assert len(chosen) == 4
    assert (last.pk, stranger.pk) in chosen


def test_an_owner_with_many_waits_for_a_place_and_others_do_not(owner: User, stranger: User) -> None:
    mine = [due_reminder(owner) for _ in range(due.FEW + 1)]
    other = due_reminder(stranger)
    for _ in range(firings().each):
        firings().take(owner.pk)
    tick(NINE)
    assert set(Run.objects.values_list("reminder", flat=True)) == {other.pk}
    firings().give_back(owner.pk)
    tick(NINE)
    assert Run.objects.filter(reminder__in=[each.pk for each in mine]).count() == len(mine)


def test_what_another_tick_holds_is_passed_over(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tick would choose it again and again, and never come to the rest."""
    monkeypatch.setattr(due, "BATCH", 3)
    held = [due_reminder(owner) for _ in range(3)]
    rest = due_reminder(owner)
    free = due._take
    monkeypatch.setattr(
        due, "_take", lambda ids: free([pk for pk in ids if pk not in {each.pk for each in held}])
    )
    tick(NINE)
    assert set(Run.objects.values_list("reminder", flat=True)) == {rest.pk}


def test_starts_by_hand_of_one_owner_leave_room_for_others(owner: User, stranger: User) -> None:
    for _ in range(fire.starts().each):
        assert fire.starts().take(owner.pk) is None
    with pytest.raises(WrongStateError, match="Try again in a few seconds"):
        fire.fire(ReminderFactory.create(owner=owner, recipients=1), by=owner)
    assert fire.fire(ReminderFactory.create(owner=stranger, recipients=1), by=stranger).pk
