"""A source over a table at a service on loopback, as a person sets it up, and what a worker does with it."""

from random import Random
from typing import Any

from django.utils import timezone

from accounts.models import User
from delivery.models import RunTarget
from delivery.states import TargetStatus
from queues.models import Item, Queue, Source, SourceRead, SourceRow
from queues.sources import dispatch, manage, mapping, serve
from queues.sources.manage import Access
from queues.sources.mapping import Columns
from tests.queues.sources.notion_service import NotionService, Page
from tests.queues.sources.sheets_service import SheetsService

RNG = Random(7)
HEAD = ("ID", "To", "Subject", "Text", "Send at", "Status", "Planned for", "Sent at", "Error", "Replied at")


def fill_notion(notion: NotionService) -> None:
    """Give the database the columns of a queue."""
    notion.add_property("Name", "title")
    notion.add_property("Address", "email")
    notion.add_property("Subject", "rich_text")
    notion.add_property("Text", "rich_text")
    notion.add_property("Send at", "date")
    notion.add_property("Status", "select", ["Pending"])
    notion.add_property("Planned for", "date")
    notion.add_property("Sent at", "date")
    notion.add_property("Error", "rich_text")


def add_page(notion: NotionService, number: int, **values: Any) -> Page:
    said = {"Address": f"p{number}@example.com", "Subject": f"Subject {number}", "Text": f"Text {number}"}
    return notion.add(**said | values)


def line(number: int, **cells: Any) -> list[Any]:
    """Return a row of a sheet; cells are named by their titles, with underscores."""
    said: dict[str, Any] = {"ID": number, "To": f"p{number}@example.com", "Text": f"Text {number}"}
    said |= {"Subject": f"Subject {number}"} | {name.replace("_", " "): v for name, v in cells.items()}
    return [said.get(title, "") for title in HEAD]


def fill_sheet(sheets: SheetsService, *lines: list[Any]) -> None:
    sheets.fill(HEAD, *lines)


def notion_source(notion: NotionService, queue: Queue, *, by: User, **chosen: Any) -> Source:
    access = Access(kind=Source.Kind.NOTION, address=notion.database, secret=notion.token)
    return set_up(access, queue, by=by, **chosen)


def sheet_source(sheets: SheetsService, queue: Queue, *, by: User, **chosen: Any) -> Source:
    address = f"https://docs.google.com/spreadsheets/d/{sheets.spreadsheet}/edit#gid={sheets.tab.id}"
    access = Access(kind=Source.Kind.SHEET, address=address, secret=sheets.credentials)
    return set_up(access, queue, by=by, **chosen)


def set_up(access: Access, queue: Queue, *, by: User, columns: Columns | None = None) -> Source:
    """Do what the form does: make the source, look at its columns, take the guess."""
    (found,) = manage.tables(access)
    source = manage.make(queue, access, found, by=by)
    schema, repeated = manage.look(source)
    chosen = columns or mapping.guess(schema, with_own_id=access.kind == Source.Kind.SHEET)
    return manage.choose_columns(source, chosen, every_minutes=5, schema=schema, repeated=repeated, by=by)


def work(source: Source, *, steps: int = 30) -> Source:
    """Let workers do all that is due, as often as they are given the source."""
    for _ in range(steps):
        taken = dispatch.take([source.pk])
        if not taken:
            break
        serve.serve(source.pk, lease=taken[0][1], rng=RNG)
    source.refresh_from_db()
    return source


def read_again(source: Source) -> Source:
    """Let the pauses pass, and do all that is due."""
    Source.objects.filter(pk=source.pk).update(retry_at=None)
    now = timezone.now()
    Source.objects.filter(pk=source.pk).update(next_read_at=now, next_tell_at=now)
    return work(source)


def go_on(source: Source) -> Source:
    """Let a pause pass, and do what was interrupted."""
    Source.objects.filter(pk=source.pk).update(retry_at=None)
    return work(source)


def tell_again(source: Source) -> Source:
    """Look again for what is to be written back."""
    Source.objects.filter(pk=source.pk).update(next_tell_at=timezone.now(), retry_at=None)
    return work(source)


def last_read(source: Source) -> SourceRead:
    return SourceRead.objects.filter(source=source).order_by("-id")[0]


def counts(source: Source) -> dict[str, int]:
    """Return what the last read counted, without what there was none of."""
    return {name: number for name, number in last_read(source).counts.items() if number}


def items(source: Source) -> list[Item]:
    rows = Item.objects.filter(queue=source.queue, source=source.key).select_related("target__content")
    return list(rows.order_by("pk"))


def texts(source: Source) -> list[str]:
    return [str((item.content.parts or [{}])[0].get("text")) for item in items(source)]


def settle(item: Item, status: TargetStatus, **changed: Any) -> None:
    """Let an item end, as the engine does."""
    rows = RunTarget.objects.filter(pk=item.target_id)
    now = timezone.now()
    sending = {"status": TargetStatus.SENDING, "attempts": 1, "fence": 1, "claimed_at": now}
    rows.filter(status=TargetStatus.PENDING).update(**sending)
    if status is not TargetStatus.SENDING:
        rows.update(status=status, **{"settled_at": now, **changed})


def problems(source: Source) -> dict[str, str]:
    rows = SourceRow.objects.filter(source=source).exclude(problem="")
    return {row.own_id or f"@{row.place}": row.problem for row in rows}


def column(sheets: SheetsService, title: str) -> list[str]:
    """Return what a column of the sheet shows, below its title."""
    place = HEAD.index(title) + 1
    return [sheets.shown(row, place) for row in range(2, len(sheets.tab.rows) + 1)]
