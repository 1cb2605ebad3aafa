"""The rows of sources are told what became of their items, whatever fails in between."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from activity.models import Inbound
from delivery.states import TargetStatus
from queues import telling
from queues.models import Item, Queue, Source, SourceRow
from tests.factories import QueueFactory
from tests.queues.sources import notion_service, sheets_service
from tests.queues.sources.notion_service import NotionService, Page
from tests.queues.sources.service import Answer, Asked
from tests.queues.sources.sheets_service import SheetsService
from tests.queues.sources.table import (
    HEAD,
    add_page,
    column,
    fill_notion,
    fill_sheet,
    items,
    line,
    notion_source,
    read_again,
    settle,
    sheet_source,
    tell_again,
    work,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

PROJECT = Path(__file__).resolve().parents[3]
STATUS = HEAD.index("Status") + 1


@pytest.fixture
def queue(owner: User) -> Queue:
    return QueueFactory.create(owner=owner, by_email=True, zone="Europe/Berlin")


@pytest.fixture
def pages(notion: NotionService) -> list[Page]:
    fill_notion(notion)
    return [add_page(notion, n) for n in range(5)]


@pytest.fixture
def notion_table(notion: NotionService, pages: list[Page], queue: Queue, owner: User) -> Source:
    return work(notion_source(notion, queue, by=owner))


@pytest.fixture
def sheet(sheets: SheetsService, queue: Queue, owner: User) -> Source:
    fill_sheet(sheets, *(line(n) for n in range(5)))
    return work(sheet_source(sheets, queue, by=owner))


def send_all(source: Source) -> None:
    for item in items(source):
        settle(item, TargetStatus.SENT)


def statuses(notion: NotionService, pages: list[Page]) -> list[str]:
    return [notion.shown(page, "Status") for page in pages]


def item_of(source: Source, own_id: str) -> Item:
    return next(item for item in items(source) if item.own_id == own_id)


def patches_of(page: Page, answer: Answer) -> Any:
    def fault(asked: Asked) -> Answer | None:
        return answer if asked.method == "PATCH" and page.id.replace("-", "") in asked.path else None

    return fault


def test_a_notion_row_is_told_each_step(
    notion: NotionService, notion_table: Source, pages: list[Page]
) -> None:
    assert statuses(notion, pages) == ["Waiting"] * 5
    settle(items(notion_table)[0], TargetStatus.SENT)
    sent_at = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    item = items(notion_table)[1]
    settle(
        item,
        TargetStatus.SENT,
        settled_at=sent_at,
        returned_at=sent_at,
        return_kind="permanent",
        return_reason="mailbox full",
    )
    settle(items(notion_table)[2], TargetStatus.FAILED, error="no such mailbox")
    tell_again(notion_table)
    by_id = {page.id.replace("-", ""): page for page in pages}
    shown = [notion.shown(by_id[item.own_id], "Status") for item in items(notion_table)]
    assert shown == ["Sent", "Returned", "Failed", "Waiting", "Waiting"]
    returned = by_id[item.own_id]
    assert notion.shown(returned, "Error") == "mailbox full"
    assert datetime.fromisoformat(notion.shown(returned, "Sent at")["start"]) == sent_at
    assert notion.shown(returned, "Planned for") is None


def test_a_row_of_a_sheet_is_told_each_step_in_the_zone_of_the_sheet(
    sheets: SheetsService, sheet: Source
) -> None:
    assert column(sheets, "Status") == ["Waiting"] * 5
    settle(item_of(sheet, "0"), TargetStatus.SENT, settled_at=datetime(2026, 11, 20, 1, 5, tzinfo=UTC))
    tell_again(sheet)
    assert column(sheets, "Status")[0] == "Sent"
    assert column(sheets, "Sent at")[0] == "2026-11-20 09:05"
    assert len(sheets.writes) == 2


def test_a_reply_is_told(sheets: SheetsService, sheet: Source) -> None:
    item = item_of(sheet, "0")
    settle(item, TargetStatus.SENT)
    Inbound.objects.create(
        account=item.target.account,
        event_id="1",
        kind=Inbound.Kind.MESSAGE,
        recipient=item.recipient,
        text="Yes please",
        at=timezone.now() + timedelta(minutes=1),
    )
    tell_again(sheet)
    assert column(sheets, "Replied at")[0]


def test_what_was_told_is_not_written_again(sheets: SheetsService, sheet: Source) -> None:
    written = len(sheets.writes)
    for _ in range(3):
        read_again(sheet)
    assert len(sheets.writes) == written


def test_a_conflict_is_written_later_and_holds_nothing_back(
    notion: NotionService, notion_table: Source, pages: list[Page]
) -> None:
    send_all(notion_table)
    notion.spoil(patches_of(pages[2], notion_service.conflict()), times=2)
    tell_again(notion_table)
    assert statuses(notion, pages) == ["Sent", "Sent", "Waiting", "Sent", "Sent"]
    tell_again(notion_table)
    tell_again(notion_table)
    assert statuses(notion, pages) == ["Sent"] * 5


def test_a_request_to_wait_is_obeyed_and_the_rest_is_written_afterwards(
    notion: NotionService, notion_table: Source, pages: list[Page]
) -> None:
    send_all(notion_table)
    notion.spoil(patches_of(pages[2], notion_service.rate_limited(40)), times=1)
    before = timezone.now()
    tell_again(notion_table)
    assert notion_table.retry_at is not None
    assert notion_table.retry_at >= before + timedelta(seconds=39)
    assert statuses(notion, pages).count("Sent") == 2
    assert work(notion_table).retry_at is not None
    assert statuses(notion, pages).count("Sent") == 2
    tell_again(notion_table)
    assert statuses(notion, pages) == ["Sent"] * 5
    written = [page for page, values in notion.writes if values.get("Status") == "Sent"]
    assert sorted(written) == sorted(page.id for page in pages)


def test_a_row_that_notion_refuses_is_named_and_not_tried_without_end(
    notion: NotionService, notion_table: Source, pages: list[Page]
) -> None:
    send_all(notion_table)
    refused = notion_service.refusal(400, "validation_error", "This page is locked.")
    notion.spoil(patches_of(pages[2], refused))
    for _ in range(4):
        tell_again(notion_table)
    assert statuses(notion, pages).count("Sent") == 4
    row = SourceRow.objects.exclude(unwritten="").get()
    assert row.unwritten == "Notion refuses it: This page is locked."
    assert notion.count("PATCH", pages[2].id.replace("-", "")) == 2


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_fails_is_done_again(sheets: SheetsService, sheet: Source, late: bool) -> None:
    send_all(sheet)
    answer = Answer(status=503, body=sheets_service.unavailable().body, late=late)
    sheets.spoil(lambda asked: answer if asked.path.endswith("values:batchUpdate") else None, times=2)
    tell_again(sheet)
    assert column(sheets, "Status") == (["Sent"] if late else ["Waiting"]) * 5
    tell_again(sheet)
    tell_again(sheet)
    assert column(sheets, "Status") == ["Sent"] * 5
    assert all(item.told for item in items(sheet))


def test_rows_that_moved_since_they_were_read_are_written_where_they_are(
    sheets: SheetsService, sheet: Source
) -> None:
    settle(item_of(sheet, "0"), TargetStatus.SENT)
    sheets.fill(sheets.tab.rows[0], *reversed(sheets.tab.rows[1:]))
    for row in sheets.tab.rows:
        row.insert(0, "x")
    tell_again(sheet)
    assert [sheets.shown(row, STATUS + 1) for row in range(2, 7)] == ["Waiting"] * 4 + ["Sent"]


def test_a_status_that_is_changed_by_hand_is_written_again_a_few_times(
    sheets: SheetsService, sheet: Source
) -> None:
    for n in range(6):
        sheets.put(2, STATUS, "Sent, I believe")
        read_again(sheet)
        expected = "Waiting" if n < 3 else "Sent, I believe"
        assert column(sheets, "Status")[0] == expected, n
    settle(item_of(sheet, "0"), TargetStatus.SENT)
    tell_again(sheet)
    assert column(sheets, "Status")[0] == "Sent"


def test_a_row_that_is_edited_while_it_is_sent_says_what_was_sent(
    sheets: SheetsService, sheet: Source
) -> None:
    settle(item_of(sheet, "0"), TargetStatus.SENDING)
    sheets.put(2, HEAD.index("Text") + 1, "Too late")
    read_again(sheet)
    assert column(sheets, "Status")[0] == "Sending"
    assert "begun" in column(sheets, "Error")[0]
    settle(item_of(sheet, "0"), TargetStatus.SENT)
    tell_again(sheet)
    assert column(sheets, "Status")[0] == "Sent"


def test_a_crash_after_the_service_took_a_row_writes_the_same_again(
    sheets: SheetsService, sheet: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_all(sheet)
    with monkeypatch.context() as broken:
        broken.setattr(telling, "told", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tell_again(sheet)
    assert column(sheets, "Status") == ["Sent"] * 5
    written = len(sheets.writes)
    tell_again(sheet)
    assert column(sheets, "Status") == ["Sent"] * 5
    assert len(sheets.writes) == written + 1


def test_a_row_that_was_deleted_is_not_written(sheets: SheetsService, sheet: Source) -> None:
    send_all(sheet)
    del sheets.tab.rows[2]
    tell_again(sheet)
    assert column(sheets, "Status") == ["Sent"] * 4
    assert all(item.told for item in items(sheet))


def test_a_token_that_was_revoked_while_writing_loses_nothing(
    notion: NotionService, notion_table: Source, pages: list[Page], owner: User
) -> None:
    send_all(notion_table)
    refused = notion_service.refusal(401, "unauthorized", "API token is invalid.")
    notion.spoil(patches_of(pages[3], refused))
    tell_again(notion_table)
    assert notion_table.stopped_at is not None
    assert statuses(notion, pages) == ["Sent", "Sent", "Sent", "Waiting", "Waiting"]
    notion.heal()
    Source.objects.update(stopped_at=None)
    tell_again(notion_table)
    assert statuses(notion, pages) == ["Sent"] * 5


@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    notion: NotionService, queue: Queue, owner: User, settings: Settings
) -> None:
    """A real process reads and writes back, and is killed again and again in the middle."""
    fill_notion(notion)
    pages = [add_page(notion, n) for n in range(130)]
    source = notion_source(notion, queue, by=owner)
    for kill_at in (2, 15, 40, 75, 110):
        _kill_at(notion, source, len(notion.asked) + kill_at, settings)
    assert _worker(notion, source, settings).wait(120) == 0
    assert Item.objects.count() == 130
    assert len({item.recipient_id for item in items(source)}) == 130
    send_all(source)
    for kill_at in (5, 40, 90):
        _kill_at(notion, source, len(notion.asked) + kill_at, settings)
    assert _worker(notion, source, settings).wait(120) == 0
    assert statuses(notion, pages) == ["Sent"] * 130
    assert not SourceRow.objects.exclude(problem="", unwritten="", due=False).exists()


def _kill_at(notion: NotionService, source: Source, requests: int, settings: Settings) -> None:
    """Start a worker and kill it when the service has had so many requests, in the middle of one."""
    process = _worker(notion, source, settings)

    def fault(_: Asked) -> Answer | None:
        if len(notion.asked) >= requests and process.poll() is None:
            process.kill()
            process.wait()
        return None

    notion.spoil(fault)
    process.wait(120)
    notion.heal()
    # What the next worker would wait for: the claim of the dead one.
    Source.objects.filter(pk=source.pk).update(busy_until=None)


def _worker(notion: NotionService, source: Source, settings: Settings) -> "subprocess.Popen[bytes]":
    place = connection.settings_dict
    url = f"postgresql://{place['USER']}:{place['PASSWORD']}@/{place['NAME']}"
    env = os.environ | {
        "DEBUG": "true",
        "DATABASE_URL": f"{url}?host={place['HOST']}&port={place['PORT']}",
        "REDIS_URL": settings.REDIS_URL,
        "NOTION_URL": notion.url,
        "ENCRYPTION_KEY": ",".join(settings.ENCRYPTION_KEYS),
    }
    command = [sys.executable, "manage.py", "read_sources", str(source.pk)]
    return subprocess.Popen(command, cwd=PROJECT, env=env, stdout=subprocess.DEVNULL)
