"""Sources over the API: read with their state and wrong rows, read now, switched, and missing rows withdrawn."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from queues.actions import put
from queues.models import Item, Source
from tests.api.program import Program, problem_of
from tests.factories import SourceFactory, SourceReadFactory, SourceRowFactory
from tests.queues.test_actions import entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def source(owner: User) -> Source:
    return SourceFactory.create(queue__owner=owner)


@pytest.mark.parametrize(
    ("values", "state", "why"),
    [
        ({}, "reading", ""),
        ({"mapping": {}}, "new", ""),
        ({"off": True}, "off", ""),
        ({"stopped": True}, "stopped", "Notion refuses the token."),
        ({"failing_since": timezone.now(), "trouble": "No answer."}, "failing", "No answer."),
    ],
)
def test_a_source_says_how_it_does_and_never_its_secret(
    owner: User, values: dict[str, object], state: str, why: str
) -> None:
    source = SourceFactory.create(queue__owner=owner, **values)
    answer = Program(owner).ask("GET", f"/sources/{source.pk}")
    found = answer.json()
    assert (found["state"], found["why"], found["queue"]) == (state, why, source.queue_id)
    assert "ntn_secret" not in answer.content.decode()
    assert [each["id"] for each in Program(owner).ask("GET", "/sources").json()["items"]] == [source.pk]


def test_its_reads_and_its_wrong_rows_are_listed(owner: User, source: Source) -> None:
    read = SourceReadFactory.create(source=source)
    SourceRowFactory.create(source=source)
    wrong = SourceRowFactory.create(source=source, problem="The address is empty.")
    program = Program(owner)
    assert [each["id"] for each in program.ask("GET", f"/sources/{source.pk}/reads").json()["items"]] == [
        read.pk
    ]
    (row,) = program.ask("GET", f"/sources/{source.pk}/rows").json()["items"]
    assert (row["id"], row["problem"]) == (wrong.pk, "The address is empty.")


def test_it_is_read_now_and_switched_off_and_on(owner: User, source: Source) -> None:
    Source.objects.update(next_read_at=timezone.now() + timedelta(hours=1))
    program = Program(owner)
    program.ask("POST", f"/sources/{source.pk}/read")
    source.refresh_from_db()
    assert source.next_read_at is not None
    assert source.next_read_at <= timezone.now()
    assert program.ask("POST", f"/sources/{source.pk}/switch-off").json()["state"] == "off"
    refused = program.ask("POST", f"/sources/{source.pk}/read")
    assert (refused.status_code, problem_of(refused)["type"]) == (409, "wrong-state")
    assert "Switch it on first" in refused.json()["detail"]
    assert program.ask("POST", f"/sources/{source.pk}/switch-on").json()["state"] == "reading"


def test_messages_of_missing_rows_are_withdrawn_after_a_confirmation(owner: User, source: Source) -> None:
    put(source.queue, [entry(1)], source=source.key, by=None)
    item = Item.objects.get()
    SourceRowFactory.create(source=source, own_id=item.own_id, item=item, missing_since=timezone.now())
    program, path = Program(owner), f"/sources/{source.pk}/withdraw-missing"
    asked = program.ask("POST", path)
    assert (asked.status_code, asked.json()["rows"]) == (409, 1)
    assert program.ask("POST", path, {"confirmed": True}).json() == {"done": 1}
    item.refresh_from_db()
    assert item.withdrawn_at is not None
