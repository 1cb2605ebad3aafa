"""The values of Notion's properties: what a cell shows, and how a value is sent. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from queues.sources.tables import Cell, Column, Holds, Value, written_number

LONGEST_PIECE, MOST_PIECES = 2_000, 100
HOLDS = {
    "rich_text": Holds.TEXT,
    "title": Holds.TEXT,
    "select": Holds.CHOICE,
    "status": Holds.STATUS,
    "date": Holds.DATE,
    "checkbox": Holds.TICK,
    "number": Holds.TEXT,
}
WRITABLE = frozenset({"rich_text", "select", "status", "date"})


def holds_of(described: Mapping[str, Any]) -> Holds:
    """Return what a property can hold; those that Paceline never writes to are fixed."""
    return HOLDS.get(described["type"], Holds.FIXED) if described["type"] in WRITABLE else Holds.FIXED


def words_of(described: Mapping[str, Any]) -> tuple[str, ...]:
    inner = described.get(described["type"]) or {}
    return tuple(option["name"] for option in inner.get("options", []))


def cell_of(value: Mapping[str, Any]) -> Cell:
    """Return what a property of a page shows."""
    return _cell(value["type"], value.get(value["type"]))


def _cell(type_: str, inner: Any) -> Cell:
    return READ.get(type_, _nothing)(inner)


def _nothing(_: Any) -> Cell:
    return Cell()


def _texts(inner: Any) -> Cell:
    return Cell(text="".join(piece.get("plain_text", "") for piece in inner or []))


def _name(inner: Any) -> Cell:
    return Cell(text=inner["name"] if inner else "")


def _names(inner: Any) -> Cell:
    return Cell(text=", ".join(each.get("name") or "" for each in inner or []))


def _date(inner: Any) -> Cell:
    return Cell(text=_moment(inner) if inner else "")


def _tick(inner: Any) -> Cell:
    return Cell(text="yes" if inner else "")


def _number(inner: Any) -> Cell:
    return Cell(text=written_number(inner))


def _key(inner: Any) -> Cell:
    return Cell(text=_numbered(inner)) if inner else Cell()


def _plain(inner: Any) -> Cell:
    return Cell(text=inner or "")


def _moment(inner: Mapping[str, Any]) -> str:
    """Return a date as it is; a zone that Notion names apart is written behind it."""
    zone = inner.get("time_zone")
    return f"{inner['start']}[{zone}]" if zone and "T" in inner["start"] else str(inner["start"])


def _numbered(inner: Mapping[str, Any]) -> str:
    prefix = inner.get("prefix")
    return f"{prefix}-{inner['number']}" if prefix else str(inner["number"])


def _computed(inner: Mapping[str, Any]) -> Cell:
    """Return what a formula or a rollup results in; one that Notion has not computed is an error."""
    type_ = str(inner.get("type", ""))
    if type_ in {"unsupported", "incomplete"}:
        return Cell(error="has not been computed by Notion")
    if type_ == "array":
        return Cell(text=", ".join(cell_of(each).text for each in inner["array"]))
    return _cell(type_, inner.get(type_))


READ: Mapping[str, Callable[[Any], Cell]] = {
    "title": _texts,
    "rich_text": _texts,
    "select": _name,
    "status": _name,
    "multi_select": _names,
    "people": _names,
    "files": _names,
    "date": _date,
    "checkbox": _tick,
    "boolean": _tick,
    "number": _number,
    "unique_id": _key,
    "formula": lambda inner: _computed(inner or {}),
    "rollup": lambda inner: _computed(inner or {}),
    **dict.fromkeys(("email", "phone_number", "url", "string", "created_time", "last_edited_time"), _plain),
}


def sent_as(column: Column, value: Value) -> dict[str, Any]:
    """Return a value as the property takes it; None empties it."""
    match column.holds:
        case Holds.DATE:
            start = value.isoformat() if isinstance(value, datetime) else value
            return {"date": {"start": start} if start else None}
        case Holds.CHOICE:
            return {"select": {"name": str(value).replace(",", "")[:100]} if value else None}
        case Holds.STATUS:
            return {"status": {"name": str(value)} if value else None}
    text = value.isoformat(" ", "minutes") if isinstance(value, datetime) else value or ""
    pieces = [text[n : n + LONGEST_PIECE] for n in range(0, len(text), LONGEST_PIECE)][:MOST_PIECES]
    return {"rich_text": [{"text": {"content": piece}} for piece in pieces]}
