"""`check_limits` and `fix_limits` see items, and an item that they move says so (SPEC S6, Q2)."""

import json
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Account, User
from delivery.lifecycle.item_events import LATER
from delivery.models import RunTarget
from delivery.planning.replan import full_day
from queues.actions import put
from queues.models import Item, Queue
from queues.states import with_state
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, QueueFactory
from tests.queues.test_actions import entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

DAY = timedelta(days=1)


@pytest.fixture
def account(owner: User) -> Account:
    account = AccountFactory.create(owner=owner, zone="UTC")
    LimitFactory.create(account=account, per_day=5)
    return account


def tomorrow() -> datetime:
    return (timezone.now() + DAY).replace(hour=10, minute=0, second=0, microsecond=0)


def planned(account: Account, count: int, at: datetime | None, pace: str = "planned") -> Queue:
    queue = QueueFactory.create(owner=account.owner, accounts=[account], zone="UTC", pace=pace)
    put(queue, [entry(n, planned_at=at) for n in range(count)], source="file", by=None)
    return queue


def check() -> list[dict[str, object]]:
    out = StringIO()
    with suppress(CommandError):  # which says in its code that something is over its cap
        call_command("check_limits", "--json", stdout=out)
    found: list[dict[str, object]] = json.loads(out.getvalue())
    return found


def days() -> Counter[object]:
    return Counter(at.date() for at in RunTarget.objects.values_list("not_before", flat=True))


def test_items_planned_over_a_cap_are_reported_and_moved_in_their_order(account: Account) -> None:
    planned(account, 12, tomorrow())
    assert check()
    call_command("fix_limits", stdout=StringIO())
    assert not check()
    assert max(days().values()) <= 5
    times = list(RunTarget.objects.order_by("pk").values_list("not_before", flat=True))
    assert times == sorted(times)


def test_an_item_that_was_moved_says_its_new_time_and_why(account: Account) -> None:
    planned(account, 6, tomorrow())
    call_command("fix_limits", stdout=StringIO())
    found = with_state(Item.objects.order_by("pk"))
    assert [each.why for each in found] == [""] * 5 + [LATER]  # type: ignore[attr-defined]
    assert found[5].planned_for > tomorrow() + DAY / 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("pace", ["planned", "steady"])
def test_items_without_a_time_that_a_full_day_moves_say_why(account: Account, pace: str) -> None:
    planned(account, 3, None, pace)
    AttemptFactory.create_batch(5, test_send=True, account=account)
    assert full_day(account, "message", now=timezone.now())
    assert {each.why for each in with_state(Item.objects.all())} == {LATER}  # type: ignore[attr-defined]


def test_a_steady_queue_says_nothing_of_times_that_it_does_not_use(account: Account) -> None:
    planned(account, 2, timezone.now() - DAY, "steady")
    assert {each.why for each in with_state(Item.objects.all())} == {""}  # type: ignore[attr-defined]


def test_days_on_which_items_were_sent_over_the_cap_are_reported(account: Account) -> None:
    AttemptFactory.create_batch(7, test_send=True, account=account, at=timezone.now() - DAY)
    assert [each["sent"] for each in check()] == [7]
