"""Notion's own client library against a server that answers as Notion does."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from queues.sources.notion import NotionTable, data_sources, database_id
from queues.sources.tables import Change, Cursor, Ended, Holds, TableRow
from queues.sources.troubles import AwayError, LostPlaceError, StoppedError, WaitError
from tests.queues.sources import notion_service
from tests.queues.sources.notion_service import NotionService, Page
from tests.queues.sources.service import Answer
from tests.silent_server import SilentServer


@pytest.fixture
def table(notion: NotionService) -> Iterator[NotionTable]:
    notion.add_property("Name", "title")
    notion.add_property("Address", "email")
    notion.add_property("Text", "rich_text")
    notion.add_property("Planned", "date")
    notion.add_property("Status", "select", ["Pending"])
    found = NotionTable(token=notion.token, data_source=notion.data_source)
    yield found
    found.close()


def read(table: NotionTable) -> list[TableRow]:
    cursor: Cursor | None = {}
    rows: list[TableRow] = []
    while cursor is not None:
        portion = table.portion(cursor, ())
        rows += portion.rows
        cursor = portion.cursor
    return rows


def text_of(notion: NotionService, row: TableRow, name: str) -> str:
    return row.cells[notion.named(name).id].text


def change(page: Page, **cells: object) -> Change:
    return Change(own_id=page.id, place=page.id, cells=cells)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "typed",
    [
        "https://www.notion.so/team/Mails-0123456789abcdef0123456789abcdef?v=11112222333344445555666677778888",
        "0123456789abcdef0123456789abcdef",
        " 01234567-89ab-cdef-0123-456789abcdef/ ",
    ],
)
def test_the_address_of_a_database_is_read_in_every_form(typed: str) -> None:
    assert database_id(typed) == "01234567-89ab-cdef-0123-456789abcdef"


def test_what_is_no_database_is_refused() -> None:
    with pytest.raises(ValueError, match="neither the id nor the address"):
        database_id("https://example.com/mails")


def test_a_database_names_its_tables(notion: NotionService) -> None:
    notion.data_sources["01234567-89ab-cdef-0123-456789abcdef"] = "Letters"
    found = data_sources(token=notion.token, database=notion.database)
    assert [each.name for each in found] == ["Mails", "Letters"]


def test_a_database_that_is_not_shared_says_how_to_share_it(notion: NotionService) -> None:
    notion.shared = False
    with pytest.raises(StoppedError, match="choose ••• and Connections"):
        data_sources(token=notion.token, database=notion.database)


def test_the_schema_has_the_columns_and_their_words(notion: NotionService, table: NotionTable) -> None:
    schema = table.schema()
    assert [column.title for column in schema.columns] == ["Address", "Name", "Planned", "Status", "Text"]
    status = schema.column(notion.named("Status").id)
    assert status is not None
    assert (status.holds, status.words) == (Holds.CHOICE, ("Pending",))


def test_every_page_of_rows_is_read(notion: NotionService, table: NotionTable) -> None:
    for n in range(250):
        notion.add(Name=f"Row {n}")
    rows = read(table)
    assert sorted(text_of(notion, row, "Name") for row in rows) == sorted(f"Row {n}" for n in range(250))
    assert notion.count("POST", "query") == 3
    assert all(row.own_id == row.place for row in rows)


def test_rows_beyond_notions_limit_of_one_query_are_read_too(
    notion: NotionService, table: NotionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notion_service, "MOST_PER_QUERY", 200)
    for n in range(450):
        notion.add(Name=f"Row {n}")
    found = {text_of(notion, row, "Name") for row in read(table)}
    assert found == {f"Row {n}" for n in range(450)}


def test_more_rows_of_one_minute_than_notion_gives_are_told(
    notion: NotionService, table: NotionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notion_service, "MOST_PER_QUERY", 200)
    for n in range(210):
        notion.add(Name=f"Row {n}").created = notion_service.BEGINNING
    with pytest.raises(StoppedError, match="in one minute"):
        read(table)


def test_deleted_rows_are_not_read(notion: NotionService, table: NotionTable) -> None:
    kept, gone = notion.add(Name="Kept"), notion.add(Name="Gone")
    notion.trash(gone)
    assert [row.place for row in read(table)] == [kept.id.replace("-", "")]


def test_a_lost_place_is_told_apart_from_a_wrong_request(notion: NotionService, table: NotionTable) -> None:
    with pytest.raises(LostPlaceError):
        table.portion({"behind": "01234567-89ab-cdef-0123-456789abcdef"}, ())


def test_values_of_all_kinds_are_read_as_people_see_them(notion: NotionService, table: NotionTable) -> None:
    for name, type_ in (
        ("Phone", "number"),
        ("Sum", "formula"),
        ("Tags", "multi_select"),
        ("Key", "unique_id"),
        ("Ready", "checkbox"),
        ("Mobile", "phone_number"),
    ):
        notion.add_property(name, type_)
    notion.add(
        Text="Dear Ann, " + "x" * 4_000,
        Address="ann@example.com",
        Planned="2026-11-20T09:00:00.000+08:00",
        Status="Pending",
        Phone=60123456789,
        Sum=1.5,
        Tags=["a", "b"],
        Key=7,
        Ready=True,
        Mobile="+60 12",
    )
    row = read(table)[0]
    assert text_of(notion, row, "Text") == "Dear Ann, " + "x" * 4_000
    expected = {
        "Address": "ann@example.com",
        "Planned": "2026-11-20T09:00:00.000+08:00",
        "Status": "Pending",
        "Phone": "60123456789",
        "Sum": "1.5",
        "Tags": "a, b",
        "Key": "MAIL-7",
        "Ready": "yes",
        "Mobile": "+60 12",
        "Name": "",
    }
    assert {name: text_of(notion, row, name) for name in expected} == expected


def test_a_row_is_written(notion: NotionService, table: NotionTable) -> None:
    notion.add_property("Sent", "date")
    page = notion.add(Name="One", Status="Pending")
    at = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
    cells = {
        notion.named("Status").id: "Sent",
        notion.named("Text").id: "y" * 5_000,
        notion.named("Sent").id: at,
    }
    assert [each.ended for each in table.write([change(page, **cells)])] == [Ended.WRITTEN]
    assert notion.shown(page, "Status") == "Sent"
    assert notion.shown(page, "Text") == "y" * 5_000
    assert notion.shown(page, "Sent") == {"start": "2026-11-20T09:00:00+00:00"}
    assert [each.ended for each in table.write([change(page, **dict.fromkeys(cells))])] == [Ended.WRITTEN]
    assert notion.shown(page, "Sent") is None


def test_each_row_ends_in_its_own_way(notion: NotionService, table: NotionTable) -> None:
    notion.add_property("State", "status", ["Sent"])
    pages = [notion.add(Name=f"Row {n}") for n in range(4)]
    notion.trash(pages[1])
    notion.spoil(
        lambda asked: (
            notion_service.conflict() if asked.method == "PATCH" and pages[2].id in asked.path else None
        )
    )
    words = ["Sent", "Sent", "Sent", "Unheard of"]
    changes = [
        change(page, **{notion.named("State").id: word}) for page, word in zip(pages, words, strict=True)
    ]
    found = list(table.write(changes))
    assert [each.ended for each in found] == [Ended.WRITTEN, Ended.GONE, Ended.LATER, Ended.REFUSED]
    assert "does not exist" in found[3].why


def test_a_column_that_is_gone_stops_writing(notion: NotionService, table: NotionTable) -> None:
    page, status = notion.add(Name="One"), notion.named("Status").id
    notion.remove_property("Status")
    with pytest.raises(StoppedError, match="deleted in Notion"):
        list(table.write([change(page, **{status: "Sent"})]))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (notion_service.rate_limited(17), WaitError, "slow down"),
        (notion_service.unavailable(), AwayError, "status 503"),
        (notion_service.refusal(529, "service_overload", "Busy.", Retry_After="5"), WaitError, "slow down"),
        (notion_service.refusal(401, "unauthorized", "API token is invalid."), StoppedError, "revoked"),
        (notion_service.refusal(403, "restricted_resource", "No."), StoppedError, "capabilities"),
        (notion_service.refusal(404, "object_not_found", "No."), StoppedError, "no longer shared"),
        (Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), AwayError, "status 302"),
        (Answer(raw=b"<html>"), AwayError, "cannot be read"),
        (Answer(body=[]), AwayError, "cannot be read"),
        (Answer(body={"object": "list", "results": [None] * 99}, cut=True), AwayError, "cannot be reached"),
    ],
)
def test_what_notion_answers_is_understood(
    notion: NotionService, table: NotionTable, answer: Answer, kind: type[Exception], words: str
) -> None:
    notion.spoil(lambda _: answer)
    with pytest.raises(kind, match=words) as found:
        table.portion({}, ())
    assert type(found.value) is kind or issubclass(type(found.value), kind)
    if answer.status == 429:
        assert isinstance(found.value, WaitError)
        assert found.value.seconds == 17


def test_a_date_in_retry_after_is_understood(notion: NotionService, table: NotionTable) -> None:
    at = datetime.now(UTC) + timedelta(seconds=90)
    notion.spoil(
        lambda _: notion_service.refusal(
            429, "rate_limited", "Wait.", Retry_After=at.strftime("%a, %d %b %Y %H:%M:%S GMT")
        )
    )
    with pytest.raises(WaitError) as found:
        table.portion({}, ())
    assert 60 < found.value.seconds <= 90


def test_a_service_that_never_answers_is_left(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queues.sources.calls.READ_SECONDS", 0.2)
    with SilentServer() as silent:
        settings.NOTION_URL = silent.url
        with pytest.raises(AwayError, match="cannot be reached"):
            data_sources(token="t", database="0" * 32)


def test_private_addresses_are_refused(notion: NotionService, settings: Settings) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    with pytest.raises(StoppedError, match="not allowed"):
        data_sources(token=notion.token, database=notion.database)
    assert notion.asked == []


def test_an_answer_that_is_too_long_is_not_read(
    notion: NotionService, table: NotionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queues.sources.calls.LONGEST_ANSWER", 10_000)
    notion.spoil(lambda _: Answer(raw=b"x" * 20_000))
    with pytest.raises(AwayError, match="too much"):
        table.portion({}, ())
