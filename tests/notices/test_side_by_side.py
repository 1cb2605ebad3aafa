"""Several workers and a person at once: each thing is passed on once, sent once, and nobody waits for ever."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import time
from random import Random
from threading import Barrier
from typing import TypeVar

import pytest
from django.db import connection

from accounts.models import User
from activity.models import Notification, NotificationOutbox
from activity.notify import tell
from notices import deliver, dispatch, manage, preferences, spread
from notices.models import Notice, NoticeAddress, Preferences
from tests.factories import NoticeAddressFactory, NoticeFactory, OperatorFactory
from tests.notices.services import Mailbox, Services

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
AT_ONCE = 4


def together(*calls: Callable[[], T]) -> list[T]:
    """Call them at the same moment, each with a connection of its own."""
    start = Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        try:
            start.wait(30)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def test_workers_that_pass_on_at_once_pass_everything_on_once(owner: User) -> None:
    NoticeAddressFactory.create(person=owner)
    others = OperatorFactory.create_batch(4)
    for number in range(15):
        for person in (owner, *others):
            tell(person.pk, Notification.Kind.FAILED, key=f"run:{number % 3}:failed:{number}", title="Failed")
    passed = 0
    while NotificationOutbox.objects.exists():
        passed += sum(together(*[spread.spread] * AT_ONCE))
    assert passed == 75
    assert sorted(Notice.objects.values_list("subject", "number")) == [
        ("run:0", 5),
        ("run:1", 5),
        ("run:2", 5),
    ]


def test_workers_that_take_at_once_take_each_address_once() -> None:
    NoticeFactory.create_batch(3)
    taken = together(*[dispatch.take] * AT_ONCE)
    found = [pk for each in taken for pk in each]
    assert len(found) == len(set(found)) == 3


def test_workers_that_serve_one_address_at_once_send_each_notice_once(
    channel: NoticeAddress, chat: Services
) -> None:
    NoticeFactory.create_batch(3, address=channel)
    served = together(*[lambda: deliver.serve(channel.pk, rng=Random(7))] * AT_ONCE)
    assert sum(served) == 1
    assert [body["title"] for body in chat.messages()] == ["3 notifications"]
    assert set(Notice.objects.values_list("state", flat=True)) == {"sent"}


def test_a_person_who_saves_and_asks_for_codes_at_once_is_not_stopped_by_a_deadlock(
    owner: User, mails: Mailbox
) -> None:
    address = manage.add(owner, "ann@example.com", kinds=["paused"], rhythm="at_once")
    wishes = preferences.Wishes(
        quiet_from=time(22),
        quiet_until=time(7),
        daily_at=time(8),
        escalate_minutes=None,
        next_people=[],
        follows=[],
    )
    for _ in range(manage.CODES_PER_DAY - 1):
        together(
            lambda: bool(preferences.save(owner, wishes)),
            lambda: bool(manage.send_code(address, by=owner)),
            lambda: bool(spread.spread()),
        )
    assert Preferences.objects.get().codes == manage.CODES_PER_DAY


def test_two_who_add_the_last_address_at_once_do_not_pass_the_limit(owner: User) -> None:
    NoticeAddressFactory.create_batch(manage.MOST - 1, person=owner)

    def add(number: int) -> bool:
        try:
            manage.add(owner, f"json://example.com/{number}", kinds=["paused"], rhythm="at_once")
        except manage.BadAddressError:
            return False
        return True

    assert sum(together(*[lambda number=number: add(number) for number in range(3)])) == 1
    assert NoticeAddress.objects.filter(person=owner).count() == manage.MOST
