"""Answers as Google does: the token endpoint for a service account, and the Sheets API v4.

What it refuses, and in which words, follows Google's reference. Empty cells at the end of a row and empty rows at the
end of a range are left out of an answer. A batch of updates is done as a whole or not at all.
"""

import base64
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.queues.sources.service import Answer, Asked, Service, serving

RANGE = re.compile(r"(?:(?:'((?:[^']|'')*)'|([^'!]+))!)?([A-Z]+)?(\d+)?(?::([A-Z]+)?(\d+)?)?")
SCOPE = "https://www.googleapis.com/auth/spreadsheets"


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell whose value differs from what is shown: a date, a number with a format, an error of a formula."""

    text: str
    number: float | None = None
    error: str = ""


Cell = str | int | float | bool | Shown | None


@cache
def key() -> rsa.RSAPrivateKey:
    """Return the key of the service account; to make one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(slots=True)
class Tab:
    """One sheet of a spreadsheet."""

    id: int
    title: str
    rows: list[list[Cell]] = field(default_factory=list)
    columns: int = 26
    spare: int = 100  # empty rows below


class RefusalError(Exception):
    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(message)
        self.answer = refusal(code, status, message)


def refusal(code: int, status: str, message: str, **headers: str) -> Answer:
    body = {"error": {"code": code, "message": message, "status": status}}
    return Answer(status=code, body=body, headers={name.replace("_", "-"): v for name, v in headers.items()})


def rate_limited(seconds: int | None = None) -> Answer:
    message = "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute per user'"
    headers = {} if seconds is None else {"Retry_After": str(seconds)}
    return refusal(429, "RESOURCE_EXHAUSTED", message, **headers)


def unavailable() -> Answer:
    return refusal(503, "UNAVAILABLE", "The service is currently unavailable.")


class SheetsService(Service):
    """One spreadsheet that is shared with one service account."""

    def __init__(self) -> None:
        super().__init__()
        self.spreadsheet = "1" + "a" * 43
        self.zone = "Asia/Kuala_Lumpur"
        self.shared, self.may_write, self.key_exists = True, True, True
        self.tabs = [Tab(0, "Mails")]
        self.writes: list[list[tuple[str, list[list[Any]]]]] = []
        self._tokens: set[str] = set()

    # What people do in Google.

    @property
    def account(self) -> str:
        return "paceline@project.iam.gserviceaccount.com"

    @property
    def credentials(self) -> str:
        """Return the JSON file of the service account, as Google gives it out."""
        pem = key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        info = {"type": "service_account", "project_id": "project", "private_key_id": "k1"}
        info |= {"private_key": pem.decode(), "client_email": self.account, "client_id": "1"}
        info |= {"token_uri": "https://oauth2.googleapis.com/token"}
        return json.dumps(info)

    @property
    def tab(self) -> Tab:
        return self.tabs[0]

    def fill(self, *rows: Sequence[Cell]) -> None:
        with self.lock:
            self.tab.rows = [list(row) for row in rows]

    def put(self, row: int, column: int, value: Cell) -> None:
        """Write a cell; both numbers begin at 1."""
        with self.lock:
            _put(self.tab, row, column, value)

    def shown(self, row: int, column: int) -> str:
        """Return what a person sees in a cell."""
        with self.lock:
            rows = self.tab.rows
            cells = rows[row - 1] if row <= len(rows) else []
            return _text(cells[column - 1]) if column <= len(cells) else ""

    def revoke_tokens(self) -> None:
        with self.lock:
            self._tokens.clear()

    # What Google answers.

    def answer(self, asked: Asked) -> Answer:
        try:
            if asked.path == "/token":
                return self._token(asked)
            return Answer(body=self._answer(asked))
        except RefusalError as error:
            return error.answer

    def _token(self, asked: Asked) -> Answer:
        form = parse_qs(asked.body.decode())
        if form.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return _no_grant("Unsupported grant type.")
        head, claims, signature = form["assertion"][0].split(".")
        said = json.loads(_decoded(claims))
        try:
            key().public_key().verify(
                _decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return _no_grant("Invalid JWT Signature.")
        if said["iss"] != self.account or not self.key_exists:
            return _no_grant("Invalid grant: account not found")
        if said["aud"] != "https://oauth2.googleapis.com/token" or SCOPE not in said["scope"].split():
            return _no_grant("Invalid audience or scope.")
        if not said["iat"] - 300 <= time.time() <= said["exp"]:
            return _no_grant("Invalid JWT: Token must be a short-lived token.")
        token = f"ya29.{len(self.asked)}"
        self._tokens.add(token)
        return Answer(body={"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _answer(self, asked: Asked) -> Any:
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise RefusalError(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        found = re.fullmatch(r"/v4/spreadsheets/([^/:]+)(?:/values(?::(\w+)|/(.+)))?", asked.path)
        if found is None:
            raise RefusalError(404, "NOT_FOUND", "Method not found.")
        if found[1] != self.spreadsheet:
            raise RefusalError(404, "NOT_FOUND", "Requested entity was not found.")
        if not self.shared:
            raise RefusalError(403, "PERMISSION_DENIED", "The caller does not have permission")
        match asked.method, found[2], found[3]:
            case "GET", None, None:
                return self._spreadsheet(asked)
            case "GET", None, range_:
                return self._values(range_, asked)
            case "GET", "batchGet", _:
                ranges = [self._values(each, asked) for each in asked.query["ranges"]]
                return {"spreadsheetId": self.spreadsheet, "valueRanges": ranges}
            case "POST", "batchUpdate", _:
                return self._update(asked.json())
        raise RefusalError(404, "NOT_FOUND", "Method not found.")

    def _spreadsheet(self, asked: Asked) -> Any:
        ranges = asked.query.get("ranges", [])
        with_data = asked.value("includeGridData") == "true" or "rowData" in asked.value("fields")
        wanted: dict[int, list[Any]] = {}
        for each in ranges:
            wanted.setdefault(self._range(each)[0].id, []).append(self._grid(each))
        sheets = []
        for n, tab in enumerate(self.tabs):
            if not ranges or tab.id in wanted:
                data = {"data": wanted[tab.id]} if with_data and ranges else {}
                sheets.append({"properties": _properties(tab, n), **data})
        properties = {"title": "Mails of autumn", "timeZone": self.zone, "locale": "en_GB"}
        return {"spreadsheetId": self.spreadsheet, "properties": properties, "sheets": sheets}

    def _grid(self, text: str) -> Any:
        _, (top, left, _, _) = self._range(text)
        rows = [{"values": [_cell(value) for value in row]} if row else {} for row in self._cells(text)]
        found: dict[str, Any] = {"rowData": rows} if rows else {}
        if top > 1:
            found["startRow"] = top - 1
        if left > 1:
            found["startColumn"] = left - 1
        return found

    def _values(self, text: str, asked: Asked) -> Any:
        tab, (top, left, bottom, right) = self._range(text)
        plain = asked.value("valueRenderOption", "FORMATTED_VALUE") == "UNFORMATTED_VALUE"
        rows = [[_plain(v) if plain else _text(v) for v in row] for row in self._cells(text)]
        found = {"range": f"{tab.title}!{_letters(left)}{top}:{_letters(right)}{bottom}"}
        found["majorDimension"] = "ROWS"
        return {**found, "values": rows} if rows else found

    def _cells(self, text: str) -> list[list[Cell]]:
        tab, (top, left, bottom, right) = self._range(text)
        rows = [_trimmed(row[left - 1 : right]) for row in tab.rows[top - 1 : bottom]]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def _range(self, text: str) -> tuple[Tab, tuple[int, int, int, int]]:
        """Return the sheet and the first row, first column, last row and last column of a range."""
        found = RANGE.fullmatch(text)
        title = (found[1] or found[2] or "").replace("''", "'") if found else ""
        tab = next((each for each in self.tabs if each.title == title), None)
        if found is None or tab is None:
            raise RefusalError(400, "INVALID_ARGUMENT", f"Unable to parse range: {text}")
        height = len(tab.rows) + tab.spare
        top, left = int(found[4] or 1), _number(found[3]) if found[3] else 1
        bottom = int(found[6]) if found[6] else height
        right = _number(found[5]) if found[5] else tab.columns
        if ":" not in text.rpartition("!")[2]:
            bottom, right = top, left
        if top > height or left > tab.columns:
            message = f"Range ({text}) exceeds grid limits. Max rows: {height}, max columns: {tab.columns}"
            raise RefusalError(400, "INVALID_ARGUMENT", message)
        return tab, (top, left, min(bottom, height), min(right, tab.columns))

    def _update(self, body: Mapping[str, Any]) -> Any:
        if not self.may_write:
            raise RefusalError(403, "PERMISSION_DENIED", "The caller does not have permission")
        if body["valueInputOption"] != "RAW":
            raise RefusalError(400, "INVALID_ARGUMENT", "Formulas must not be written here.")
        places = [(self._range(each["range"]), each) for each in body["data"]]
        for (tab, (top, left, _, _)), each in places:
            for down, row in enumerate(each["values"]):
                for right, value in enumerate(row):
                    if value is not None:
                        _put(tab, top + down, left + right, value)
        self.writes.append([(each["range"], each["values"]) for each in body["data"]])
        return {"spreadsheetId": self.spreadsheet, "totalUpdatedCells": len(places)}


def _put(tab: Tab, row: int, column: int, value: Cell) -> None:
    while len(tab.rows) < row:
        tab.rows.append([])
    cells = tab.rows[row - 1]
    cells += [None] * (column - len(cells))
    cells[column - 1] = value


def _properties(tab: Tab, n: int) -> Any:
    grid = {"rowCount": len(tab.rows) + tab.spare, "columnCount": tab.columns}
    return {"sheetId": tab.id, "title": tab.title, "index": n, "sheetType": "GRID", "gridProperties": grid}


def _cell(value: Cell) -> Any:
    if value is None or value == "":
        return {}
    if isinstance(value, Shown):
        if value.error:
            return {"formattedValue": value.text, "effectiveValue": {"errorValue": {"type": value.error}}}
        return {"formattedValue": value.text, "effectiveValue": {"numberValue": value.number}}
    if isinstance(value, bool):
        return {"formattedValue": _text(value), "effectiveValue": {"boolValue": value}}
    if isinstance(value, int | float):
        return {"formattedValue": _text(value), "effectiveValue": {"numberValue": value}}
    return {"formattedValue": value, "effectiveValue": {"stringValue": value}}


def _text(value: Cell) -> str:
    if isinstance(value, Shown):
        return value.text
    if isinstance(value, bool):
        return str(value).upper()
    return "" if value is None else str(value)


def _plain(value: Cell) -> Any:
    if isinstance(value, Shown):
        return value.text if value.number is None else value.number
    return "" if value is None else value


def _trimmed(row: Sequence[Cell]) -> list[Cell]:
    cells = list(row)
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return cells


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _no_grant(why: str) -> Answer:
    return Answer(status=400, body={"error": "invalid_grant", "error_description": why})


@contextmanager
def sheets() -> Iterator[SheetsService]:
    """Run a Google with an empty sheet."""
    service = SheetsService()
    with serving(service):
        yield service
