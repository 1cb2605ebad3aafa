"""A Notion database as a table. Since version 2025-09-03 its rows lie in data sources, of which it may have several.

A query gives at most 10,000 rows and tells only in `request_status` that there are more. So the rows are asked for in
the order in which they were made, and behind the last one a new query begins with the minute of that one.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import UUID

import httpx
from django.conf import settings
from django.utils import timezone
from notion_client import Client
from notion_client.errors import HTTPResponseError, NotionClientErrorBase

from queues.sources.calls import ForHttpx, Line
from queues.sources.notion_values import cell_of, holds_of, sent_as, words_of
from queues.sources.tables import Change, Column, Cursor, Ended, Known, Portion, Schema, TableRow, Written
from queues.sources.troubles import AwayError, LostPlaceError, StoppedError, TroubleError, WaitError

VERSION = "2025-09-03"
PER_ANSWER = 100
USUAL_WAIT, LONGEST_WAIT = 30.0, 3_600.0
BY_AGE = [{"timestamp": "created_time", "direction": "ascending"}]
LASTING = {
    401: "Notion refuses the token: it was revoked or is wrong. Enter a new one.",
    403: "The integration may not do this. In Notion, give it the capabilities to read and update content.",
}
SHARE_IT = "Open it in Notion, choose ••• and Connections, and add the integration."

_quiet = logging.getLogger("paceline.notion")


@dataclass(frozen=True, slots=True)
class DataSource:
    """One table of a database."""

    id: str
    name: str


def database_id(text: str) -> str:
    """Return the id in what a person typed: an id, or the address of a database; raise ValueError."""
    path = text.strip().partition("?")[0].rstrip("/")
    found = re.search(r"([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$", path)
    if found is None:
        raise ValueError("This is neither the id nor the address of a Notion database.")
    return str(UUID(found[1]))


class NotionTable:
    """The rows of one data source."""

    def __init__(self, *, token: str, data_source: str, own_id: str = "") -> None:
        self._data_source, self._own_id = data_source, own_id
        self._client = _client(token)

    def close(self) -> None:
        self._client.close()

    def schema(self) -> Schema:
        with _troubles():
            found: Any = self._client.data_sources.retrieve(self._data_source)
            columns = [
                Column(id=each["id"], title=name, holds=holds_of(each), words=words_of(each))
                for name, each in found["properties"].items()
            ]
            title = "".join(piece.get("plain_text", "") for piece in found.get("title", []))
        return Schema(title=title, columns=tuple(sorted(columns, key=lambda column: column.title.lower())))

    def known(self) -> Known | None:
        return None

    def portion(self, cursor: Cursor, columns: Collection[str]) -> Portion:  # noqa: ARG002 - all come anyway
        answer = self._asked(cursor)
        with _troubles():
            rows = [self._row(page) for page in answer["results"] if page.get("object") == "page"]
            return Portion(rows=[row for row in rows if row is not None], cursor=_next(cursor, answer))

    def _asked(self, cursor: Cursor) -> Any:
        asked: dict[str, Any] = {"sorts": BY_AGE, "page_size": PER_ANSWER}
        if since := cursor.get("since"):
            asked["filter"] = {"timestamp": "created_time", "created_time": {"on_or_after": since}}
        if behind := cursor.get("behind"):
            asked["start_cursor"] = behind
        try:
            with _troubles():
                return self._client.data_sources.query(self._data_source, **asked)
        except _RefusedError as error:
            if behind:
                raise LostPlaceError("Notion no longer knows where the read was interrupted.") from error
            raise

    def _row(self, page: Mapping[str, Any]) -> TableRow | None:
        if page.get("in_trash") or page.get("archived"):
            return None
        cells = {each["id"]: cell_of(each) for each in page["properties"].values()}
        place = UUID(page["id"]).hex
        return TableRow(place=place, cells=cells, own_id="" if self._own_id else place)

    def write(self, changes: Sequence[Change]) -> Iterator[Written]:
        schema = self.schema()
        for change in changes:
            yield self._written(change, schema)

    def _written(self, change: Change, schema: Schema) -> Written:
        properties = {}
        for key, value in change.cells.items():
            if (column := schema.column(key)) is None:
                raise StoppedError(
                    "A property that Paceline writes was deleted in Notion. Choose another one."
                )
            properties[key] = sent_as(column, value)
        try:
            with _troubles():
                self._client.pages.update(change.place, properties=properties)
        except _ConflictError:
            return Written(change=change, ended=Ended.LATER, why="Somebody else was writing this row.")
        except _GoneError:
            return Written(change=change, ended=Ended.GONE)
        except _RefusedError as error:
            ended = Ended.GONE if "archived" in str(error) else Ended.REFUSED
            return Written(change=change, ended=ended, why=str(error))
        return Written(change=change, ended=Ended.WRITTEN)


def data_sources(*, token: str, database: str) -> Sequence[DataSource]:
    """Return the tables of a database; raise a Trouble."""
    client = _client(token)
    try:
        with _troubles():
            found: Any = client.databases.retrieve(database)
    except _GoneError as error:
        raise StoppedError(f"Notion does not show this database to the integration. {SHARE_IT}") from error
    finally:
        client.close()
    return [DataSource(each["id"], each.get("name", "")) for each in found.get("data_sources", [])]


def _client(token: str) -> Client:
    # The library's own retries would sleep here, and its own logger writes to the terminal.
    return Client(
        client=httpx.Client(transport=ForHttpx(Line("Notion")), trust_env=False),
        auth=token,
        base_url=settings.NOTION_URL,
        notion_version=VERSION,
        retry=False,
        logger=_quiet,
        log_level=logging.CRITICAL,
    )


def _next(cursor: Cursor, answer: Mapping[str, Any]) -> Cursor | None:
    if answer.get("has_more") and answer.get("next_cursor"):
        return {**cursor, "behind": answer["next_cursor"], **_last(cursor, answer)}
    if (answer.get("request_status") or {}).get("type") != "incomplete":
        return None
    last = _last(cursor, answer).get("last", "")
    if not last or last == cursor.get("since"):
        raise StoppedError(
            "More than 10,000 rows were made in one minute, and Notion gives no more than these. "
            "Move some of them into another database. Nothing was withdrawn."
        )
    return {"since": last, "last": last}


def _last(cursor: Cursor, answer: Mapping[str, Any]) -> Cursor:
    results = answer["results"]
    return {"last": results[-1]["created_time"]} if results else {"last": cursor.get("last", "")}


class _RefusedError(StoppedError):
    """Notion does not take this request; its words say why."""


class _GoneError(StoppedError):
    """The object does not exist, or is not shared with us."""


class _ConflictError(AwayError):
    """Somebody else changed the same object."""


@contextmanager
def _troubles() -> Iterator[None]:
    """Turn the library's errors into troubles."""
    try:
        yield
    except HTTPResponseError as error:
        raise _trouble(error) from error
    except NotionClientErrorBase as error:
        raise AwayError(f"Notion did not answer: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AwayError("Notion answered with something that cannot be read.") from error


def _trouble(error: HTTPResponseError) -> TroubleError:
    """Return what an answer means; 529 has no code that the library knows."""
    status = error.status
    if status in LASTING:
        return StoppedError(LASTING[status])
    if status in {429, 529}:
        return WaitError("Notion asked us to slow down.", _seconds(error.headers))
    if status == 404:
        return _GoneError("Notion does not find it, or it is no longer shared with the integration.")
    if status == 409:
        return _ConflictError("Somebody else changed the same row.")
    if status == 400 and getattr(error.code, "value", error.code) == "validation_error":
        return _RefusedError(f"Notion refuses it: {str(error)[:300]}")
    return AwayError(f"Notion fails at the moment (status {status}).")


def _seconds(headers: Mapping[str, str]) -> float:
    """Return how long to wait: Retry-After is a number of seconds, or a date."""
    text = headers.get("retry-after", "")
    try:
        found = float(text)
    except ValueError:
        try:
            found = (parsedate_to_datetime(text) - timezone.now()).total_seconds()
        except (ValueError, TypeError):
            found = USUAL_WAIT
    return min(max(found, 1.0), LONGEST_WAIT)
