"""The event `items.changed`: what webhooks are told of items, by the ids that their sources know."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Delivery, User
from api.hooks import results
from delivery import lifecycle
from delivery.lifecycle.item_events import state_word
from delivery.models import Run, RunTarget
from queues.actions import put, replan, withdraw
from queues.keep_times import keep_times
from queues.models import Item, Queue
from queues.states import ItemState, with_state
from tests.factories import AccountFactory, AttemptFactory, QueueFactory, WebhookFactory
from tests.queues.test_actions import entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

HOUR = timedelta(hours=1)


@pytest.fixture
def queue(owner: User) -> Queue:
    WebhookFactory.create(owner=owner, events=["items.changed"])
    return QueueFactory.create(owner=owner)


def told() -> list[tuple[str, str]]:
    """Return own ids with their states, of all events in their order."""
    rows = Delivery.objects.filter(type="items.changed").order_by("pk")
    return [(item["own_id"], item["state"]) for row in rows for item in row.payload["data"]["items"]]


def give(queue: Queue, *numbers: int, **values: Any) -> list[Item]:
    put(queue, [entry(n, **values) for n in numbers], source="file", by=None)
    return list(Item.objects.filter(queue=queue).select_related("target").order_by("pk"))


def settle(item: Item, status: str) -> None:
    """Note a result as the engine does: the target and the ledger together."""
    rows = RunTarget.objects.filter(pk=item.target_id)
    rows.update(status="sending", fence=1, claimed_at=timezone.now())
    rows.update(status=status, settled_at=timezone.now(), claimed_at=None)
    target = rows.select_related("run", "account").get()
    AttemptFactory.create(target=target, run=target.run, account=target.account, owner=target.run.owner)


def test_items_are_told_when_they_are_added_changed_planned_and_withdrawn(queue: Queue) -> None:
    first, second = give(queue, 1, 2)
    give(queue, 1, text="New")
    give(queue, 1, text="New")  # changes nothing
    replan(queue, item_ids=[second.pk], planned_at=timezone.now() + HOUR, by=None)
    withdraw(queue, by=None, item_ids=[first.pk])
    assert told() == [
        *(("row-1", "waiting"), ("row-2", "waiting")),
        *(("row-1", "waiting"), ("row-2", "planned"), ("row-1", "withdrawn")),
    ]
    (event,) = Delivery.objects.filter(sequence=f"queue:{queue.pk}").order_by("-pk")[:1]
    assert event.payload["data"]["queue"] == queue.pk


def test_results_are_told_with_the_ids_of_their_source(queue: Queue) -> None:
    first, second, _ = give(queue, 1, 2, 3)
    Delivery.objects.all().delete()
    settle(first, "sent")
    settle(second, "failed")
    while results.collect():
        pass
    assert told() == [("row-1", "sent"), ("row-2", "failed")]
    assert {row.type for row in Delivery.objects.all()} == {"items.changed"}


def test_a_webhook_that_wants_both_gets_both(queue: Queue, owner: User) -> None:
    WebhookFactory.create(owner=owner, events=["items.changed", "run.targets"])
    (item,) = give(queue, 1)
    Delivery.objects.all().delete()
    settle(item, "sent")
    while results.collect():
        pass
    assert sorted(Delivery.objects.values_list("type", flat=True)) == [
        *("items.changed", "items.changed", "run.targets"),
    ]


def test_a_decision_about_an_item_in_doubt_is_told(queue: Queue, owner: User) -> None:
    (item,) = give(queue, 1)
    settle(item, "unconfirmed")
    Run.objects.filter(pk=item.target.run_id).update(pending=0, unconfirmed=1)
    lifecycle.confirm(RunTarget.objects.select_related("run", "account").get(pk=item.target_id), by=owner)
    assert told()[-1] == ("row-1", "sent")


def test_a_time_that_moves_is_told_with_its_reason(owner: User) -> None:
    WebhookFactory.create(owner=owner, events=["items.changed"])
    account = AccountFactory.create(owner=owner)
    queue = QueueFactory.create(
        owner=owner, accounts=[account], window_start_hour=9, window_end_hour=10, zone="UTC"
    )
    night = (timezone.now() + timedelta(days=1)).replace(hour=3, minute=0, second=0, microsecond=0)
    give(queue, 1, planned_at=night)
    assert keep_times() == 1
    item = Delivery.objects.order_by("-pk")[0].payload["data"]["items"][0]
    assert "outside the delivery hours" in item["why"]
    assert datetime.fromisoformat(item["planned_for"]).hour == 9


def test_reminders_make_no_such_event_and_an_owner_without_a_webhook_none(stranger: User) -> None:
    give(QueueFactory.create(owner=stranger), 1)
    assert told() == []


@pytest.mark.parametrize("state", ItemState)
def test_an_event_says_the_same_state_as_the_page(queue: Queue, state: ItemState) -> None:
    (item,) = give(queue, 1, planned_at=timezone.now() + HOUR)
    rows = RunTarget.objects.filter(pk=item.target_id)
    now = timezone.now()
    if state == ItemState.WAITING:
        rows.update(not_before=now - HOUR)
    elif state != ItemState.PLANNED:
        rows.update(status="sending", fence=1, claimed_at=now)
        if state != ItemState.SENDING:
            status = {"returned": "sent", "in_doubt": "unconfirmed", "withdrawn": "skipped"}.get(state, state)
            rows.update(status=status, settled_at=now, claimed_at=None)
    if state == ItemState.RETURNED:
        rows.update(returned_at=now, return_kind="permanent", return_reason="550")
    if state == ItemState.WITHDRAWN:
        rows.update(error="withdrawn")
    assert state_word(rows.get(), now) == with_state(Item.objects.all()).get().state == state  # type: ignore[attr-defined]
