"""On time first and overdue slowly, or each sender at its own pace, as a queue has chosen (SPEC P9, Q4)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Account, User
from delivery.engine.next_run import Turn, next_turn
from delivery.engine.wakeups import Rest
from delivery.models import RunTarget
from delivery.states import WaitReason
from queues.actions import put
from queues.keep_times import keep_times
from queues.models import Item, Queue
from queues.states import with_state
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, QueueFactory, ReminderFactory
from tests.queues.test_actions import entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def planned(queue: Queue, *times: datetime | None) -> list[Item]:
    put(queue, [entry(n, planned_at=at) for n, at in enumerate(times)], source="file", by=None)
    return list(Item.objects.filter(queue=queue).select_related("target").order_by("pk"))


def ask(account: Account) -> Turn | Rest:
    return next_turn(account, now=timezone.now(), busy=False)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def sent(account: Account, ago: timedelta) -> None:
    AttemptFactory.create(test_send=True, account=account, at=timezone.now() - ago)


def test_an_overdue_item_leaves_alone_and_after_a_gap(account: Account) -> None:
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    planned(queue, *[timezone.now() - n * HOUR for n in range(1, 6)])
    first = ask(account)
    assert isinstance(first, Turn)
    assert first.most == 1
    sent(account, MINUTE)
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert rest.reason is WaitReason.GAP
    assert rest.until is not None
    assert 2 * MINUTE <= rest.until - timezone.now() + MINUTE <= 5 * MINUTE


def test_an_item_on_time_goes_before_overdue_ones(account: Account) -> None:
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    items = planned(queue, timezone.now() - HOUR, timezone.now())
    sent(account, MINUTE)
    turn = ask(account)
    assert isinstance(turn, Turn)
    assert turn.planned.since is not None
    assert items[0].target.not_before < turn.planned.since <= items[1].target.not_before


def test_a_steady_queue_sends_as_the_account_may(account: Account) -> None:
    queue = QueueFactory.create(owner=account.owner, accounts=[account], steady=True)
    planned(queue, *[timezone.now() - HOUR] * 5)
    sent(account, MINUTE)
    turn = ask(account)
    assert isinstance(turn, Turn)
    assert turn.most is None


def test_reminders_of_the_account_are_not_slowed_by_overdue_items(account: Account) -> None:
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    planned(queue, timezone.now() - HOUR)
    from reminders.fire import fire  # noqa: PLC0415

    run = fire(
        ReminderFactory.create(owner=account.owner, accounts=[account], recipients=3, around_the_clock=True)
    )
    sent(account, MINUTE)
    turn = ask(account)
    assert isinstance(turn, Turn)
    assert (turn.run.run_id, turn.most) == (run.pk, None)


def test_items_without_a_time_do_not_leave_together_in_a_planned_queue(account: Account) -> None:
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    planned(queue, *[None] * 5)
    turn = ask(account)
    assert isinstance(turn, Turn)
    assert turn.most == 1


def at_noon(days: int = 1) -> datetime:
    return (timezone.now() + days * DAY).replace(hour=12, minute=0, second=0, microsecond=0)


def whys(queue: Queue) -> list[Any]:
    rows = with_state(Item.objects.filter(queue=queue)).order_by("pk")
    return list(rows.values_list("why", flat=True))  # type: ignore[misc] # an annotation


def test_a_time_that_the_daily_limit_cannot_keep_moves_before_it_is_due(account: Account) -> None:
    LimitFactory.create(account=account, per_day=2)
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    items = planned(queue, *[at_noon() + n * HOUR for n in range(4)])
    assert keep_times() == 2
    times = [RunTarget.objects.get(pk=item.target_id).not_before for item in items]
    assert times[:2] == [at_noon(), at_noon() + HOUR]
    assert all(at.date() == at_noon(2).date() for at in times[2:])
    assert whys(queue)[:2] == ["", ""]
    assert all("can send 2 messages per day" in why for why in whys(queue)[2:])
    assert keep_times() == 0


def test_a_time_outside_the_delivery_hours_moves_to_their_opening(account: Account) -> None:
    queue = QueueFactory.create(
        owner=account.owner, accounts=[account], window_start_hour=9, window_end_hour=18
    )
    (item,) = planned(queue, at_noon() + 8 * HOUR)
    assert keep_times() == 1
    item.target.refresh_from_db()
    assert (item.target.not_before.hour, item.target.not_before.date()) == (9, at_noon(2).date())
    assert "outside the delivery hours" in whys(queue)[0]


def test_items_at_one_moment_move_apart_by_the_gap_of_their_account(account: Account) -> None:
    LimitFactory.create(account=account, per_minute=None, gap_min=600, gap_max=600)
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    items = planned(queue, *[at_noon()] * 3)
    assert keep_times() == 2
    times = [RunTarget.objects.get(pk=item.target_id).not_before for item in items]
    assert times == [at_noon() + n * 10 * MINUTE for n in range(3)]
    assert "has others to send at that time" in whys(queue)[1]


def test_no_hour_gets_more_than_its_limit(account: Account) -> None:
    LimitFactory.create(account=account, per_minute=None, per_hour=2)
    queue = QueueFactory.create(owner=account.owner, accounts=[account])
    items = planned(queue, *[at_noon() + n * MINUTE for n in range(6)])
    keep_times()
    times = sorted(RunTarget.objects.get(pk=item.target_id).not_before for item in items)
    assert all(later - earlier >= HOUR for earlier, later in zip(times, times[2:], strict=False))
