"""Google's client libraries against a server that answers as Google does."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from queues.sources import sheets as module
from queues.sources.cells import moment_of, own_id_of
from queues.sources.sheets import SheetTable, account_of, spreadsheet_id, tabs
from queues.sources.tables import Change, Cursor, Ended, TableRow
from queues.sources.troubles import AwayError, StoppedError, WaitError
from tests.queues.sources import sheets_service
from tests.queues.sources.service import Answer, Asked
from tests.queues.sources.sheets_service import SheetsService, Shown, Tab

TITLES = ("ID", "To", "Text", "When", "Status")


@pytest.fixture
def table(sheets: SheetsService) -> Iterator[SheetTable]:
    sheets.fill(
        TITLES,
        (1, "a@example.com", "Hello", Shown("20/11/2026 9:00", 46346.375)),
        ("b-2", "b@example.com", Shown("RM 1,200.50", 1200.5)),
    )
    yield from opened(sheets)


def opened(sheets: SheetsService) -> Iterator[SheetTable]:
    found = SheetTable(
        account=sheets.credentials, spreadsheet=sheets.spreadsheet, tab=sheets.tab.id, own_id="ID"
    )
    yield found
    found.close()


def read(table: SheetTable, *columns: str) -> list[TableRow]:
    cursor: Cursor | None = {}
    rows: list[TableRow] = []
    while cursor is not None:
        portion = table.portion(cursor, columns)
        rows += portion.rows
        cursor = portion.cursor
    return rows


def change(own_id: str, place: str = "", **cells: str) -> Change:
    return Change(own_id=own_id, place=place, cells=cells)


def test_the_address_of_a_sheet_is_read() -> None:
    key = "1" + "a" * 43
    assert spreadsheet_id(f"https://docs.google.com/spreadsheets/d/{key}/edit?gid=12#gid=12") == (key, 12)
    assert spreadsheet_id(f" {key} ") == (key, None)


@pytest.mark.parametrize("typed", ["https://evil.example/spreadsheets/d/" + "a" * 44, "x", "../../a" * 9])
def test_what_is_no_sheet_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="not the address of a Google sheet"):
        spreadsheet_id(typed)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"private_key": "x", "client_email": "y"}'])
def test_what_is_no_service_account_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"service account|cannot be read"):
        account_of(text)


def test_a_service_account_is_named_by_its_mail_address(sheets: SheetsService) -> None:
    assert account_of(sheets.credentials) == sheets.account


def test_a_service_account_that_names_another_address_for_its_tokens_is_not_followed(
    sheets: SheetsService,
) -> None:
    forged = sheets.credentials.replace("https://oauth2.googleapis.com/token", "http://127.0.0.1:1/token")
    assert [tab.title for tab in tabs(account=forged, spreadsheet=sheets.spreadsheet)] == ["Mails"]


def test_a_spreadsheet_names_its_sheets(sheets: SheetsService) -> None:
    sheets.tabs.append(Tab(5, "Notes"))
    found = tabs(account=sheets.credentials, spreadsheet=sheets.spreadsheet)
    assert [(tab.id, tab.title) for tab in found] == [(0, "Mails"), (5, "Notes")]


def test_the_schema_has_the_titles_and_the_zone(sheets: SheetsService, table: SheetTable) -> None:
    schema = table.schema()
    assert [column.title for column in schema.columns] == list(TITLES)
    assert (schema.title, schema.zone) == ("Mails of autumn", "Asia/Kuala_Lumpur")
    sheets.put(1, 6, "Text")
    table.schema()
    assert table.repeated_titles() == {"Text"}


def test_cells_are_read_as_shown_and_dates_by_their_number(table: SheetTable) -> None:
    first, second = read(table)
    assert (first.cells["Text"].text, second.cells["Text"].text) == ("Hello", "RM 1,200.50")
    assert first.cells["When"].number is not None
    assert moment_of(first.cells["When"].number).isoformat() == "2026-11-20T09:00:00"
    assert [own_id_of(row.cells["ID"]) for row in (first, second)] == ["1", "b-2"]


def test_an_own_id_stays_the_same_when_its_format_changes(sheets: SheetsService, table: SheetTable) -> None:
    sheets.put(2, 1, Shown("0001.00", 1.0))
    assert own_id_of(read(table)[0].cells["ID"]) == "1"
    known = table.known()
    assert known is not None
    assert known.once == {"1", "b-2"}


def test_the_error_of_a_formula_is_seen(sheets: SheetsService, table: SheetTable) -> None:
    sheets.put(2, 3, Shown("#REF!", error="REF"))
    assert read(table)[0].cells["Text"].error == "shows the error #REF!"


def test_rows_are_read_in_portions_and_empty_ones_left_out(
    sheets: SheetsService, table: SheetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheets.fill(TITLES, *[(n, f"{n}@example.com") if n % 7 else () for n in range(1, 1_300)])
    monkeypatch.setattr(module, "PER_ANSWER", 500)
    found = [own_id_of(row.cells["ID"]) for row in read(table, "ID")]
    assert found == [str(n) for n in range(1, 1_300) if n % 7]
    assert [row.place for row in read(table, "ID")][:2] == ["2", "3"]


def test_a_column_that_moves_between_two_portions_is_found_again(
    sheets: SheetsService, table: SheetTable
) -> None:
    first = table.portion({}, ())
    for row in sheets.tab.rows:
        row.insert(0, "new")
    again = table.portion({}, ("ID", "Text"))
    assert [row.cells["Text"] for row in again.rows] == [row.cells["Text"] for row in first.rows]


def test_portions_shrink_where_cells_are_large(
    sheets: SheetsService, table: SheetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheets.fill(TITLES, *[(n, "x", "y" * 3_000) for n in range(1, 61)])
    monkeypatch.setattr("queues.sources.calls.LONGEST_ANSWER", 20_000)
    assert len(read(table)) == 60


def test_own_ids_that_several_rows_have_are_known(sheets: SheetsService, table: SheetTable) -> None:
    sheets.fill(TITLES, ("a",), ("b",), (), ("a",), ("", "x"))
    known = table.known()
    assert known is not None
    assert (known.once, known.repeated) == ({"b"}, {"a"})


def test_rows_are_written_where_they_are_now(sheets: SheetsService, table: SheetTable) -> None:
    read(table)
    sheets.tab.rows.insert(1, ["new", "n@example.com"])
    found = list(table.write([change("1", "2", Status="Sent"), change("b-2", "3", Status="=1+1")]))
    assert [each.ended for each in found] == [Ended.WRITTEN] * 2
    assert [sheets.shown(n, 5) for n in (2, 3, 4)] == ["", "Sent", "=1+1"]
    assert len(sheets.writes) == 1


def test_rows_that_are_gone_are_told_of(sheets: SheetsService, table: SheetTable) -> None:
    read(table)
    del sheets.tab.rows[1]
    found = list(table.write([change("1", "2", Status="Sent"), change("b-2", "3", Status="Sent")]))
    assert [each.ended for each in found] == [Ended.GONE, Ended.WRITTEN]
    assert [sheets.shown(n, 5) for n in (2, 3)] == ["Sent", ""]


def test_a_row_without_an_own_id_is_written_at_its_place(sheets: SheetsService, table: SheetTable) -> None:
    sheets.fill(TITLES, ("", "x"), ("a", "y"), ("a", "z"), ("b", "w"))
    changes = [change("", "2", Status="1"), change("", "4", Status="2"), change("", "5", Status="3")]
    found = list(table.write([*changes, change("a", "3", Status="4")]))
    assert [each.ended for each in found] == [Ended.WRITTEN, Ended.WRITTEN, Ended.GONE, Ended.GONE]
    assert [sheets.shown(n, 5) for n in (2, 3, 4, 5)] == ["1", "", "2", ""]


def test_a_column_that_is_gone_stops_everything(sheets: SheetsService, table: SheetTable) -> None:
    table.schema()
    sheets.put(1, 1, "Number")
    with pytest.raises(StoppedError, match="“ID” is gone"):
        table.known()


def test_a_sheet_with_marks_in_its_title_is_read(sheets: SheetsService, table: SheetTable) -> None:
    sheets.tab.title = "Ann's: list!"
    assert len(read(table)) == 2
    assert table.known() is not None


def test_a_sheet_that_was_deleted_is_told(sheets: SheetsService, table: SheetTable) -> None:
    sheets.tabs = [Tab(5, "Other")]
    with pytest.raises(StoppedError, match="was deleted"):
        table.schema()


def test_a_token_that_was_taken_back_is_asked_for_again(sheets: SheetsService, table: SheetTable) -> None:
    read(table)
    sheets.revoke_tokens()
    assert len(read(table)) == 2


def test_a_key_that_was_deleted_stops_everything(sheets: SheetsService, table: SheetTable) -> None:
    module._credentials.cache_clear()
    sheets.key_exists = False
    with pytest.raises(StoppedError, match="refuses the key"):
        SheetTable(account=sheets.credentials, spreadsheet=sheets.spreadsheet, tab=0).schema()


def test_a_sheet_that_is_no_longer_shared_stops_everything(sheets: SheetsService, table: SheetTable) -> None:
    sheets.shared = False
    with pytest.raises(StoppedError, match="Share it with the account"):
        table.schema()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (sheets_service.rate_limited(9), WaitError, "slow down"),
        (sheets_service.rate_limited(), WaitError, "slow down"),
        (sheets_service.unavailable(), AwayError, "status 503"),
        (Answer(status=500, raw=b"<html>"), AwayError, "status 500"),
        (Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), AwayError, "status 302"),
        (Answer(raw=b"<html>"), AwayError, "cannot be read"),
        (Answer(body={"sheets": [1] * 90}, cut=True), AwayError, "cannot be reached"),
    ],
)
def test_what_google_answers_is_understood(
    sheets: SheetsService, table: SheetTable, answer: Answer, kind: type[Exception], words: str
) -> None:
    read(table)

    def fault(asked: Asked) -> Answer | None:
        return answer if "/v4/" in asked.path else None

    sheets.spoil(fault)
    with pytest.raises(kind, match=words) as found:
        read(table)
    if isinstance(found.value, WaitError):
        assert found.value.seconds == (9 if answer.headers else 60)


def test_private_addresses_are_refused(sheets: SheetsService, table: SheetTable, settings: Settings) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    with pytest.raises(StoppedError, match="not allowed"):
        table.schema()
    assert sheets.asked == []
