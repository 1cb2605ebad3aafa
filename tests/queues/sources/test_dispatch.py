"""Sources get their turns: few at once, one of each owner, and one worker for each."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from delivery.states import TargetStatus
from queues.models import Queue, Source
from queues.sources import dispatch, manage, reading, serve, writing
from queues.sources.opening import columns, opened
from tests.factories import QueueFactory, SourceFactory
from tests.queues.sources import notion_service
from tests.queues.sources.notion_service import NotionService
from tests.queues.sources.sheets_service import SheetsService
from tests.queues.sources.table import (
    RNG,
    add_page,
    column,
    counts,
    fill_notion,
    fill_sheet,
    items,
    last_read,
    line,
    notion_source,
    settle,
    sheet_source,
    tell_again,
    work,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def queue(owner: User) -> Queue:
    return QueueFactory.create(owner=owner, by_email=True)


def due(**values: object) -> Source:
    return SourceFactory.create(**{"next_read_at": timezone.now(), **values})


def taken() -> set[int]:
    return {source_id for source_id, _ in dispatch.take()}


def test_one_source_of_each_owner_is_worked_on_and_only_few_of_all(owner: User) -> None:
    mine = [due(queue__owner=owner) for _ in range(3)]
    others = [due() for _ in range(2)]
    first = taken()
    assert first & {source.pk for source in mine} == {mine[0].pk}
    assert first >= {source.pk for source in others}
    assert taken() == set()
    Source.objects.filter(pk=mine[0].pk).update(busy_until=None, served_at=timezone.now())
    assert taken() == {mine[1].pk}


def test_owners_share_the_places() -> None:
    sources = [due() for _ in range(dispatch.AT_ONCE + 2)]
    first = taken()
    assert len(first) == dispatch.AT_ONCE
    Source.objects.filter(pk__in=first).update(busy_until=None, served_at=timezone.now())
    assert {source.pk for source in sources} - first <= taken()


@pytest.mark.parametrize(
    "values",
    [
        {"switched_off_at": timedelta()},
        {"stopped_at": timedelta(), "stopped_why": "x"},
        {"retry_at": timedelta(minutes=5)},
        {"next_read_at": timedelta(minutes=5)},
        {"next_read_at": None},
        {"queue__archived": True},
        {"queue__owner__is_active": False},
    ],
)
def test_what_has_to_wait_is_not_taken(values: dict[str, object]) -> None:
    now = timezone.now()
    due(**{name: now + each if isinstance(each, timedelta) else each for name, each in values.items()})
    assert taken() == set()


def test_a_worker_whose_lease_ended_does_nothing_more(
    notion: NotionService, queue: Queue, owner: User
) -> None:
    fill_notion(notion)
    add_page(notion, 1)
    source = notion_source(notion, queue, by=owner)
    ((_, old),) = dispatch.take([source.pk])
    Source.objects.filter(pk=source.pk).update(busy_until=timezone.now() - timedelta(seconds=1))
    ((_, new),) = dispatch.take([source.pk])
    asked = len(notion.asked)
    assert serve.serve(source.pk, lease=old, rng=RNG) == 0
    assert len(notion.asked) == asked
    source.refresh_from_db()
    assert source.busy_until is not None
    assert serve.serve(source.pk, lease=new, rng=RNG) > 0
    assert len(items(source)) == 1


def test_a_long_read_gives_others_their_turn_and_goes_on(
    notion: NotionService, queue: Queue, owner: User
) -> None:
    fill_notion(notion)
    for n in range(250):
        add_page(notion, n)
    source = notion_source(notion, queue, by=owner)
    for _ in range(20):
        ((_, lease),) = dispatch.take([source.pk]) or [(0, 0)]
        if not lease:
            break
        serve.serve(source.pk, lease=lease, rng=RNG, seconds=0.001)
    assert counts(source) == {"rows": 250, "added": 250}
    assert notion.count("POST", "query") == 3


def test_rows_of_a_large_sheet_are_told_in_batches(
    sheets: SheetsService, queue: Queue, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "AT_A_TIME", {Source.Kind.SHEET: 1_000})
    fill_sheet(sheets, *(line(n) for n in range(1_200)))
    source = work(sheet_source(sheets, queue, by=owner))
    assert len(sheets.writes) == 2
    for item in items(source)[::2]:
        settle(item, TargetStatus.SENT)
    tell_again(source)
    assert column(sheets, "Status") == ["Sent", "Waiting"] * 600


def test_columns_that_change_while_a_table_is_read_begin_a_new_read(
    notion: NotionService, queue: Queue, owner: User
) -> None:
    fill_notion(notion)
    for n in range(150):
        add_page(notion, n)
    source = notion_source(notion, queue, by=owner)
    notion.spoil(
        lambda asked: notion_service.rate_limited(5) if "start_cursor" in asked.json() else None, times=1
    )
    work(source)
    first = last_read(source).pk
    schema, repeated = manage.look(source)
    chosen = columns(source)
    manage.choose_columns(source, chosen, every_minutes=9, schema=schema, repeated=repeated, by=owner)
    work(source)
    assert last_read(source).pk > first
    assert counts(source)["rows"] == 150


def test_a_table_that_somebody_wants_read_while_it_is_read_is_read_again(
    notion: NotionService, queue: Queue, owner: User
) -> None:
    fill_notion(notion)
    add_page(notion, 1)
    source = notion_source(notion, queue, by=owner)
    table = opened(source)
    begun = reading.begin(source, table)
    manage.read_now(source, by=owner)
    assert reading.step(begun) is False
    table.close()
    source.refresh_from_db()
    assert source.next_read_at is not None
    assert source.next_read_at <= timezone.now()
