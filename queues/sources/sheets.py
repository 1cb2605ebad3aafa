"""A sheet of Google Sheets as a table: its first row has the titles, one column has the own ids.

Rows of a sheet have no name but their number, and the number changes when somebody sorts or inserts. So a row is found
by its own id, and the titles are read together with every portion of rows: a column that moved is found again.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from google.auth.exceptions import RefreshError, TransportError
from google.auth.transport.requests import Request
from google.oauth2.service_account import Credentials
from gspread.exceptions import APIError
from gspread.http_client import HTTPClient
from gspread.utils import rowcol_to_a1
from requests import Response, Session

from queues.sources.calls import AnswerTooLongError, ForRequests, Line
from queues.sources.tables import (
    Cell,
    Change,
    Column,
    Cursor,
    Ended,
    Holds,
    Known,
    Portion,
    Schema,
    TableRow,
    Value,
    Written,
    written_number,
)
from queues.sources.troubles import AwayError, StoppedError, TroubleError, WaitError

GOOGLE_TOKENS, GOOGLE_SHEETS = "https://oauth2.googleapis.com", "https://sheets.googleapis.com"
SCOPES = ("https://www.googleapis.com/auth/spreadsheets",)
FIELDS = (
    "properties(title,timeZone),"
    "sheets(properties(sheetId,title,gridProperties),"
    "data(rowData(values(formattedValue,effectiveValue(numberValue,boolValue,errorValue)))))"
)
PER_ANSWER = 1_000
MOST_ROWS, MOST_COLUMNS = 200_000, 100
USUAL_WAIT = 60.0  # Google counts per minute
LASTING = {
    401: "Google refuses the service account. Enter the JSON file of a new key.",
    403: "The service account may not open or change the sheet. Share it with the account, as an editor.",
    404: "Google does not find the sheet. It was deleted, or its address is wrong.",
}


@dataclass(frozen=True, slots=True)
class Tab:
    """One sheet of a spreadsheet."""

    id: int
    title: str


def spreadsheet_id(text: str) -> tuple[str, int | None]:
    """Return the ids of the spreadsheet and, where the address names one, of the sheet; raise ValueError."""
    typed = text.strip()
    found = re.match(r"https://docs\.google\.com/spreadsheets/(?:u/\d+/)?d/([A-Za-z0-9_-]{20,100})", typed)
    if found is None and re.fullmatch(r"[A-Za-z0-9_-]{20,100}", typed):
        return typed, None
    if found is None:
        raise ValueError("This is not the address of a Google sheet.")
    tab = re.search(r"[#?&]gid=(\d{1,10})\b", typed)
    return found[1], int(tab[1]) if tab else None


def account_of(text: str) -> str:
    """Return the mail address of the service account in its JSON file; raise ValueError."""
    info = _info(text)
    _credentials(text)
    return str(info["client_email"])


def _info(text: str) -> dict[str, Any]:
    try:
        info = json.loads(text)
    except ValueError as error:
        raise ValueError("This is not the JSON file of a service account.") from error
    if not isinstance(info, dict) or not {"private_key", "client_email"} <= info.keys():
        raise ValueError("This is not the JSON file of a service account.")
    # The file could name any address here, and it would be given a signed statement.
    return info | {"token_uri": f"{GOOGLE_TOKENS}/token"}


@lru_cache(maxsize=128)
def _credentials(text: str) -> Credentials:
    """Return the credentials, which keep their token for an hour."""
    try:
        found: Credentials = Credentials.from_service_account_info(  # type: ignore[no-untyped-call] # google-auth
            _info(text), scopes=SCOPES
        )
    except ValueError as error:
        raise ValueError("The key in this file cannot be read.") from error
    return found


class SheetTable:
    """The rows of one sheet. `own_id` is the title of the column of own ids; empty while it is not known yet."""

    def __init__(self, *, account: str, spreadsheet: str, tab: int, own_id: str = "") -> None:
        self._spreadsheet, self._tab, self._own_id = spreadsheet, tab, own_id
        self._client = _client(account)
        self._titles: list[str] = []
        self._title = ""
        self._per_answer = PER_ANSWER
        self._known: Known | None = None

    def close(self) -> None:
        self._client.session.close()

    def schema(self) -> Schema:
        about = self._about()
        self._titles = self._first_row()
        columns = tuple(
            Column(id=title, title=title, holds=Holds.ANYTHING) for title in self._titles if title
        )
        return Schema(
            title=about["properties"]["title"], columns=columns, zone=about["properties"]["timeZone"]
        )

    def repeated_titles(self) -> Collection[str]:
        """Return the titles that several columns have, as the last look at the schema found them."""
        return {title for title, number in Counter(self._titles).items() if title and number > 1}

    def known(self) -> Known | None:
        """Return the own ids. One answer has them all, so they are those of one moment."""
        count = Counter(own_id for own_id in self._ids() if own_id)
        repeated = {own_id for own_id, number in count.items() if number > 1}
        self._known = Known(once=set(count) - repeated, repeated=repeated)
        return self._known

    def portion(self, cursor: Cursor, columns: Collection[str]) -> Portion:
        first = int(cursor.get("row", 2))
        last = first + self._per_answer - 1
        try:
            with _troubles():
                titles, rows = self._rows(first, last)
        except AnswerTooLongError as error:
            if self._per_answer == 1:
                raise StoppedError(f"Row {first} is too large to be read. Shorten its cells.") from error
            self._per_answer = max(1, self._per_answer // 4)
            return self.portion(cursor, columns)
        found = [_row(first + n, cells, titles, columns) for n, cells in enumerate(rows) if any(cells)]
        return Portion(rows=found, cursor={"row": last + 1} if last < self._end() else None)

    def _rows(self, first: int, last: int) -> tuple[list[str], list[list[Any]]]:
        """Return the titles and the cells of these rows, of one moment."""
        if first > self._end():
            return [], []
        last = min(last, self._end())
        width = rowcol_to_a1(1, MOST_COLUMNS).rstrip("1")
        ranges = [self._range("1:1"), self._range(f"A{first}:{width}{last}")]
        found = self._client.spreadsheets_get(self._spreadsheet, params={"ranges": ranges, "fields": FIELDS})
        sheet = found["sheets"][0]
        self._title, self._height = sheet["properties"]["title"], _height(sheet)
        head, body = ([row.get("values", []) for row in part.get("rowData", [])] for part in sheet["data"])
        titles = [cell.get("formattedValue", "").strip() for cell in head[0]] if head else []
        return titles, body

    def write(self, changes: Sequence[Change]) -> Iterator[Written]:
        """Write the changes in one request, which Google does as a whole or not at all."""
        ids = self._ids()
        places: dict[str, list[int]] = {}
        for number, own_id in enumerate(ids, start=2):
            places.setdefault(own_id, []).append(number)
        columns: dict[str, dict[int, str]] = {}
        ended = []
        for change in changes:
            row = _place(change, places)
            for title, value in change.cells.items() if row else ():
                columns.setdefault(title, {})[row or 0] = _text(value)
            ended.append(Written(change=change, ended=Ended.WRITTEN if row else Ended.GONE))
        if data := [self._update(title, block) for title, rows in columns.items() for block in _blocks(rows)]:
            with _troubles():
                self._client.values_batch_update(
                    self._spreadsheet, body={"valueInputOption": "RAW", "data": data}
                )
        yield from ended

    def _update(self, title: str, block: Mapping[int, str]) -> dict[str, Any]:
        """Return the update of neighboring cells of one column."""
        column = self._titles.index(title) + 1
        first, last = rowcol_to_a1(min(block), column), rowcol_to_a1(max(block), column)
        place = first if len(block) == 1 else f"{first}:{last}"
        return {"range": self._range(place), "values": [[text] for text in block.values()]}

    def _ids(self) -> list[str]:
        """Return the own ids of all rows, empty where there is none, as they are at one moment."""
        if not self._titles:
            self.schema()
        for _ in range(3):
            place = self._titles.index(self._own_id) + 1 if self._own_id in self._titles else 0
            if not place:
                raise StoppedError(f"The column “{self._own_id}” is gone. Give the sheet its title back.")
            letters = rowcol_to_a1(1, place).rstrip("1")
            ranges = [self._range("1:1"), self._range(f"{letters}2:{letters}")]
            with _troubles():
                found = self._client.values_batch_get(
                    self._spreadsheet, ranges, params={"valueRenderOption": "UNFORMATTED_VALUE"}
                )
            head, ids = (part.get("values", []) for part in found["valueRanges"])
            titles = [str(cell).strip() for cell in head[0]] if head else []
            if titles == self._titles:
                return [_own_id(row[0]) if row else "" for row in ids]
            self._titles = titles  # columns were moved meanwhile
        raise AwayError("The columns of the sheet are being moved.")

    def _first_row(self) -> list[str]:
        with _troubles():
            found = self._client.values_get(self._spreadsheet, self._range("1:1"))
        values = found.get("values", [])
        return [str(cell).strip() for cell in values[0][:MOST_COLUMNS]] if values else []

    def _about(self) -> Any:
        with _troubles():
            found = self._client.spreadsheets_get(
                self._spreadsheet,
                params={
                    "fields": "properties(title,timeZone),sheets(properties(sheetId,title,gridProperties))"
                },
            )
        sheet = next((each for each in found["sheets"] if each["properties"]["sheetId"] == self._tab), None)
        if sheet is None:
            raise StoppedError("The sheet was deleted from the spreadsheet.")
        self._title, self._height = sheet["properties"]["title"], _height(sheet)
        if self._height > MOST_ROWS:
            raise StoppedError(
                f"The sheet has more than {MOST_ROWS:,} rows. Delete the empty ones, or split it."
            )
        return found

    def _end(self) -> int:
        """Return the number of the last row."""
        if not self._title:
            self._about()
        return self._height

    def _range(self, part: str) -> str:
        if not self._title:
            self._about()
        return "'" + self._title.replace("'", "''") + "'!" + part


def tabs(*, account: str, spreadsheet: str) -> Sequence[Tab]:
    """Return the sheets of a spreadsheet; raise a Trouble."""
    client = _client(account)
    try:
        with _troubles():
            found = client.spreadsheets_get(
                spreadsheet, params={"fields": "sheets(properties(sheetId,title,sheetType))"}
            )
    finally:
        client.session.close()
    properties = [each["properties"] for each in found["sheets"]]
    return [
        Tab(each["sheetId"], each["title"]) for each in properties if each.get("sheetType", "GRID") == "GRID"
    ]


def _client(account: str) -> HTTPClient:
    adapter = ForRequests(
        Line("Google"), {GOOGLE_TOKENS: settings.GOOGLE_TOKENS_URL, GOOGLE_SHEETS: settings.GOOGLE_SHEETS_URL}
    )
    try:
        credentials = _credentials(account)
    except ValueError as error:
        raise StoppedError(str(error)) from error
    session = _Session(credentials)
    session.mount("https://", adapter)
    return HTTPClient(credentials, session)


class _Session(Session):
    """Requests with the token of a service account; one that was taken back is asked for once more."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__()
        self.trust_env = False
        self._credentials = credentials

    def request(self, method: str, url: str, **kwargs: Any) -> Response:  # type: ignore[override]
        answer = self._request(method, url, kwargs)
        if answer.status_code != 401:
            return answer
        self._credentials.token = None
        return self._request(method, url, kwargs)

    def _request(self, method: str, url: str, kwargs: Mapping[str, Any]) -> Response:
        headers = dict(kwargs.get("headers") or {})
        # The request for a token comes back here, without a token.
        if not url.startswith(GOOGLE_TOKENS):
            if not self._credentials.valid:
                self._credentials.refresh(Request(self))  # type: ignore[no-untyped-call] # google-auth
            self._credentials.apply(headers)  # type: ignore[no-untyped-call] # google-auth
        return super().request(method, url, **{**kwargs, "headers": headers})


def _row(number: int, cells: Sequence[Any], titles: Sequence[str], wanted: Collection[str]) -> TableRow:
    found = {
        title: _cell(cell)
        for title, cell in zip(titles, cells, strict=False)
        if title and (not wanted or title in wanted)
    }
    return TableRow(place=str(number), cells=found)


def _cell(cell: Mapping[str, Any]) -> Cell:
    value = cell.get("effectiveValue", {})
    shown = cell.get("formattedValue", "")
    if error := value.get("errorValue"):
        return Cell(text=shown, error=f"shows the error {shown or error.get('type', '')}")
    if value.get("boolValue") is not None:
        return Cell(text="yes" if value["boolValue"] else "")
    return Cell(text=shown, number=value.get("numberValue"))


def _own_id(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (written_number(value) if number else str(value)).strip()


def _place(change: Change, places: Mapping[str, Sequence[int]]) -> int | None:
    """Return the number of the row: that of its own id, or its old one while that row still has none of its own."""
    if change.own_id:
        rows = places.get(change.own_id, ())
        return rows[0] if len(rows) == 1 else None
    number = int(change.place) if change.place.isdecimal() else 0
    nameless = (rows for own_id, rows in places.items() if not own_id or len(rows) > 1)
    return number if any(number in rows for rows in nameless) else None


def _text(value: Value) -> str:
    return value.isoformat(" ", "minutes") if isinstance(value, datetime) else value or ""


def _blocks(cells: Mapping[int, str]) -> Iterator[dict[int, str]]:
    """Yield the cells of a column, by their row, in stretches without a gap: each is one range of a request."""
    block: dict[int, str] = {}
    for row in sorted(cells):
        if block and row - 1 not in block:
            yield block
            block = {}
        block[row] = cells[row]
    if block:
        yield block


def _height(sheet: Mapping[str, Any]) -> int:
    return int(sheet["properties"].get("gridProperties", {}).get("rowCount", 0))


@contextmanager
def _troubles() -> Iterator[None]:
    """Turn the libraries' errors into troubles."""
    try:
        yield
    except APIError as error:
        raise _trouble(error) from error
    except RefreshError as error:
        raise _no_token(error) from error
    except TransportError as error:
        raise AwayError("Google did not answer the request for a token.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AwayError("Google answered with something that cannot be read.") from error


def _no_token(error: RefreshError) -> TroubleError:
    if getattr(error, "retryable", False):
        return AwayError("Google gives no token at the moment.")
    return StoppedError(
        "Google refuses the key of the service account: it was deleted or is wrong. Enter the JSON file of a new key."
    )


def _trouble(error: APIError) -> TroubleError:
    status, said = error.response.status_code, str(error.error.get("message", ""))[:300]
    if status == 403 and "protected" in said:
        return StoppedError("A column that Paceline writes is protected. Take the protection away.")
    if status in LASTING:
        return StoppedError(LASTING[status])
    if status == 429:
        return WaitError("Google asked us to slow down.", _seconds(error.response.headers))
    why = f"refuses the request: {said}" if status == 400 else f"fails at the moment (status {status})."
    return AwayError(f"Google {why}")


def _seconds(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    return min(max(float(text), 1.0), 3_600.0) if text.isdecimal() else USUAL_WAIT
