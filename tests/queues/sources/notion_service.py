"""Answers as Notion's API does in its version of 2025-09-03: databases, data sources, queries and pages.

What it refuses, and in which words, follows Notion's reference. A database has data sources, a data source has
properties and pages; a query gives at most 100 pages per answer and 10,000 over all its answers, and says so only in
`request_status`. `created_time` has no seconds.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.queues.sources.service import Answer, Asked, Service, serving

MOST_PER_ANSWER, MOST_PER_QUERY = 100, 10_000
LONGEST_TEXT = 2_000
BEGINNING = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class Property:
    """A column of a data source."""

    id: str
    name: str
    type: str
    options: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Page:
    """A row. `values` has what people see, by the id of the property."""

    id: str
    created: datetime
    edited: datetime
    values: dict[str, Any] = field(default_factory=dict)
    in_trash: bool = False


class RefusalError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.answer = refusal(status, code, message)


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    body = {"object": "error", "status": status, "code": code, "message": message}
    body["request_id"] = str(uuid.uuid4())
    return Answer(
        status=status, body=body, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


def rate_limited(seconds: int) -> Answer:
    message = "You have been rate limited. Please try again in a few minutes."
    return refusal(429, "rate_limited", message, Retry_After=str(seconds))


def conflict() -> Answer:
    return refusal(409, "conflict_error", "Conflict occurred while saving. Please try again.")


def unavailable() -> Answer:
    return refusal(503, "service_unavailable", "Notion is unavailable, please try again later.")


class NotionService(Service):
    """One workspace with one database of one data source."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "ntn_" + "t" * 40
        self.database = str(uuid.uuid4())
        self.data_sources = {str(uuid.uuid4()): "Mails"}
        self.shared = True
        self.properties: dict[str, Property] = {}
        self.pages: dict[str, Page] = {}
        self.writes: list[tuple[str, dict[str, Any]]] = []
        self._now = BEGINNING

    # What people do in Notion.

    @property
    def data_source(self) -> str:
        return next(iter(self.data_sources))

    def add_property(self, name: str, type_: str, options: Sequence[str] = ()) -> Property:
        found = Property(id=f"p{len(self.properties)}", name=name, type=type_, options=list(options))
        self.properties[found.id] = found
        return found

    def named(self, name: str) -> Property:
        return next(each for each in self.properties.values() if each.name == name)

    def remove_property(self, name: str) -> None:
        with self.lock:
            del self.properties[self.named(name).id]

    def rename_property(self, name: str, new: str) -> None:
        with self.lock:
            self.named(name).name = new

    def add(self, **values: Any) -> Page:
        """Add a row; the names of properties are written with underscores."""
        with self.lock:
            at = self._later()
            page = Page(id=str(uuid.uuid4()), created=at, edited=at)
            self.pages[page.id] = page
            self._set(page, values)
            return page

    def edit(self, page: Page, **values: Any) -> None:
        with self.lock:
            self._set(page, values)
            page.edited = self._later()

    def trash(self, page: Page) -> None:
        with self.lock:
            page.in_trash = True

    def shown(self, page: Page, name: str) -> Any:
        with self.lock:
            return page.values.get(self.named(name).id)

    def _set(self, page: Page, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            page.values[self.named(name.replace("_", " ")).id] = value

    def _later(self) -> datetime:
        self._now += timedelta(seconds=7)
        return self._now.replace(second=0)

    # What Notion answers.

    def answer(self, asked: Asked) -> Answer:
        try:
            return Answer(body=self._answer(asked))
        except RefusalError as error:
            return error.answer

    def _answer(self, asked: Asked) -> Any:
        self._check(asked)
        match asked.method, asked.path.strip("/").split("/")[1:]:
            case "GET", ["databases", key]:
                return self._database(key)
            case "GET", ["data_sources", key]:
                return self._schema(key)
            case "POST", ["data_sources", key, "query"]:
                return self._query(key, asked)
            case "GET", ["pages", key]:
                return self._shown(self._page(key), None)
            case "PATCH", ["pages", key]:
                return self._update(self._page(key), asked.json())
        raise RefusalError(400, "invalid_request_url", "Invalid request URL.")

    def _check(self, asked: Asked) -> None:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            raise RefusalError(401, "unauthorized", "API token is invalid.")
        if asked.headers.get("notion-version") != "2025-09-03":
            raise RefusalError(400, "missing_version", "Notion-Version header should be defined.")

    def _database(self, key: str) -> Any:
        if not self.shared or uuid.UUID(key) != uuid.UUID(self.database):
            raise _not_found("database", key)
        sources = [{"id": each, "name": name} for each, name in self.data_sources.items()]
        title = [{"type": "text", "plain_text": "Mails", "text": {"content": "Mails"}}]
        return {"object": "database", "id": self.database, "title": title, "data_sources": sources}

    def _schema(self, key: str) -> Any:
        self._known(key)
        properties = {each.name: _described(each) for each in self.properties.values()}
        parent = {"type": "database_id", "database_id": self.database}
        return {"object": "data_source", "id": key, "parent": parent, "properties": properties}

    def _known(self, key: str) -> None:
        if not self.shared or str(uuid.UUID(key)) not in self.data_sources:
            raise _not_found("data_source", key)

    def _query(self, key: str, asked: Asked) -> Any:
        self._known(key)
        body = asked.json()
        size = body.get("page_size", MOST_PER_ANSWER)
        if not 1 <= size <= MOST_PER_ANSWER:
            raise _invalid("body.page_size should be ≤ `100`.")
        found = self._chosen(body)
        start = self._start(found[:MOST_PER_QUERY], body.get("start_cursor"))
        page, rest = found[start : start + size], found[start + size : MOST_PER_QUERY]
        wanted = asked.query.get("filter_properties")
        answer = {"object": "list", "type": "page_or_data_source", "has_more": bool(rest)}
        answer["results"] = [self._shown(each, wanted) for each in page]
        answer["next_cursor"] = rest[0].id if rest else None
        if len(found) > MOST_PER_QUERY and not rest:
            reason = "query_result_limit_reached"
            answer["request_status"] = {"type": "incomplete", "incomplete_reason": reason}
        return answer

    def _chosen(self, body: Mapping[str, Any]) -> list[Page]:
        found = [page for page in self.pages.values() if not page.in_trash]
        if limits := body.get("filter"):
            if limits.get("timestamp") != "created_time":
                raise _invalid("body.filter is not supported here.")
            since = datetime.fromisoformat(limits["created_time"]["on_or_after"])
            found = [page for page in found if page.created >= since]
        if body.get("sorts"):
            if body["sorts"] != [{"timestamp": "created_time", "direction": "ascending"}]:
                raise _invalid("body.sorts is not supported here.")
            found.sort(key=lambda page: page.created)
        return found

    def _start(self, found: Sequence[Page], cursor: str | None) -> int:
        if cursor is None:
            return 0
        place = next((n for n, page in enumerate(found) if page.id == cursor), None)
        if place is None:
            raise _invalid("The start_cursor provided is invalid: " + cursor)
        return place

    def _page(self, key: str) -> Page:
        page = self.pages.get(str(uuid.UUID(key)))
        if page is None or not self.shared:
            raise _not_found("page", key)
        return page

    def _shown(self, page: Page, wanted: Sequence[str] | None) -> Any:
        chosen = [each for each in self.properties.values() if wanted is None or each.id in wanted]
        return {
            "object": "page",
            "id": page.id,
            "created_time": _moment(page.created),
            "last_edited_time": _moment(page.edited),
            "in_trash": page.in_trash,
            "archived": page.in_trash,
            "parent": {"type": "data_source_id", "data_source_id": self.data_source},
            "properties": {each.name: _value(each, page.values.get(each.id)) for each in chosen},
        }

    def _update(self, page: Page, body: Mapping[str, Any]) -> Any:
        if page.in_trash:
            raise _invalid("Can't edit block that is archived. You must unarchive the block before editing.")
        changes = {}
        for key, value in body.get("properties", {}).items():
            found = self.properties.get(key) or next(
                (each for each in self.properties.values() if each.name == key), None
            )
            if found is None:
                raise _invalid(f"{key} is not a property that exists.")
            changes[found.id] = _written(found, value)
        page.values |= changes
        page.edited = self._later()
        self.writes.append((page.id, {self.properties[key].name: value for key, value in changes.items()}))
        return self._shown(page, None)


def _described(found: Property) -> Any:
    options = {"options": [{"id": name, "name": name, "color": "default"} for name in found.options]}
    inner = options if found.type in {"select", "multi_select", "status"} else {}
    return {"id": found.id, "name": found.name, "type": found.type, found.type: inner}


def _value(found: Property, value: Any) -> Any:
    return {"id": found.id, "type": found.type, found.type: _inner(found.type, value)}


def _inner(type_: str, value: Any) -> Any:  # noqa: PLR0911 - one per kind
    match type_:
        case "title" | "rich_text":
            pieces = (
                [value[n : n + LONGEST_TEXT] for n in range(0, len(value), LONGEST_TEXT)] if value else []
            )
            return [{"type": "text", "text": {"content": p}, "plain_text": p} for p in pieces]
        case "select" | "status":
            return {"id": value, "name": value, "color": "default"} if value else None
        case "multi_select":
            return [{"id": name, "name": name} for name in value or []]
        case "date":
            return (
                value
                if isinstance(value, dict) or not value
                else {"start": value, "end": None, "time_zone": None}
            )
        case "formula":
            kind = {bool: "boolean", int: "number", float: "number"}.get(type(value), "string")
            return {"type": kind, kind: value}
        case "unique_id":
            return {"prefix": "MAIL", "number": value}
        case "checkbox":
            return bool(value)
    return value or None if type_ != "number" else value


def _written(found: Property, value: Mapping[str, Any]) -> Any:  # noqa: C901 - one per kind
    """Return what people see of a value that was sent, or refuse it as Notion does."""
    if found.type not in value:
        raise _invalid(f"{found.name} is expected to be {found.type}.")
    inner = value[found.type]
    match found.type:
        case "title" | "rich_text":
            if len(inner) > 100:
                raise _invalid("body.properties.rich_text.length should be ≤ `100`.")
            for piece in inner:
                if len(piece["text"]["content"]) > LONGEST_TEXT:
                    length = len(piece["text"]["content"])
                    raise _invalid(f"text.content.length should be ≤ `2000`, instead was `{length}`.")
            return "".join(piece["text"]["content"] for piece in inner)
        case "select":
            if inner and "," in inner["name"]:
                raise _invalid("Invalid select option, commas not allowed: " + inner["name"])
            if inner and inner["name"] not in found.options:
                found.options.append(inner["name"])
            return inner["name"] if inner else None
        case "status":
            if inner and inner["name"] not in found.options:
                raise _invalid(f'Status option "{inner["name"]}" does not exist.')
            return inner["name"] if inner else None
        case "date" | "url" | "email" | "phone_number" | "number" | "checkbox":
            return inner
    raise _invalid(f"{found.name} cannot be updated.")


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:00.000Z")


def _invalid(message: str) -> RefusalError:
    return RefusalError(400, "validation_error", message)


def _not_found(kind: str, key: str) -> RefusalError:
    message = f"Could not find {kind} with ID: {key}. Make sure the relevant pages and databases are shared"
    return RefusalError(404, "object_not_found", message + " with your integration.")


@contextmanager
def notion() -> Iterator[NotionService]:
    """Run a Notion with an empty database."""
    service = NotionService()
    with serving(service):
        yield service
