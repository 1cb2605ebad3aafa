"""Items over the API: given by own ids, read with their states, planned and withdrawn."""

from typing import Any

import pytest

from accounts.models import User
from queues.models import Item, Queue
from tests.api.program import Program
from tests.factories import QueueFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def queue(owner: User) -> Queue:
    return QueueFactory.create(owner=owner)


def given(number: int, **values: Any) -> dict[str, Any]:
    return {"own_id": f"row-{number}", "address": f"+6012700000{number}", "text": "Hello"} | values


def give(owner: User, queue: Queue, *items: dict[str, Any]) -> list[dict[str, Any]]:
    answer = Program(owner).ask("POST", f"/queues/{queue.pk}/items", {"items": list(items)})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_items_are_given_once_and_wrong_ones_are_refused_with_a_reason(owner: User, queue: Queue) -> None:
    results = give(owner, queue, given(1), given(2, address="nobody"))
    assert [each["result"] for each in results] == ["added", "refused"]
    assert results[1]["why"]
    assert give(owner, queue, given(1))[0]["result"] == "unchanged"
    assert give(owner, queue, given(1, text="New"))[0]["result"] == "changed"


def test_items_are_read_page_by_page_and_by_state(owner: User, queue: Queue) -> None:
    give(owner, queue, given(1), given(2), given(3, planned_at="2031-01-05T10:30:00Z"))
    program, path = Program(owner), f"/queues/{queue.pk}/items"
    first = program.ask("GET", f"{path}?limit=2").json()
    rest = program.ask("GET", f"{path}?limit=2&cursor={first['next_cursor']}").json()
    assert [each["own_id"] for each in first["items"] + rest["items"]] == ["row-3", "row-2", "row-1"]
    (planned,) = program.ask("GET", f"{path}?state=planned").json()["items"]
    assert (planned["own_id"], planned["planned_for"]) == ("row-3", "2031-01-05T10:30:00Z")
    assert program.ask("GET", f"/queues/{queue.pk}").json()["to_send"] == 3


def test_items_are_planned_and_withdrawn(owner: User, queue: Queue) -> None:
    give(owner, queue, given(1), given(2))
    ids, program = list(Item.objects.order_by("pk").values_list("pk", flat=True)), Program(owner)
    body = {"items": ids, "planned_at": "2031-01-05T10:30:00Z"}
    assert program.ask("POST", f"/queues/{queue.pk}/items/plan", body).json() == {"done": 2, "begun": 0}
    done = program.ask("POST", f"/queues/{queue.pk}/items/withdraw", {"items": ids[:1]})
    assert done.json() == {"done": 1, "begun": 0}
    states = [each["state"] for each in program.ask("GET", f"/queues/{queue.pk}/items").json()["items"]]
    assert states == ["planned", "withdrawn"]


def test_a_queue_is_paused_and_canceled_after_a_confirmation(owner: User, queue: Queue) -> None:
    give(owner, queue, given(1))
    program = Program(owner)
    assert program.ask("POST", f"/queues/{queue.pk}/pause").json()["paused_at"]
    assert program.ask("POST", f"/queues/{queue.pk}/pause").status_code == 409
    assert program.ask("POST", f"/queues/{queue.pk}/cancel").status_code == 409
    assert program.ask("POST", f"/queues/{queue.pk}/cancel", {"confirmed": True}).json()["to_send"] == 0
