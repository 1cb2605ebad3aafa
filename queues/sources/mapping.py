"""The meanings of columns: guessed from their titles, checked, and used to read a row as an entry."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from accounts.imports.columns import variable_name
from queues.entries import Entry, EntryError, read_priority, read_time
from queues.sources.cells import moment_of, own_id_of
from queues.sources.tables import Cell, Column, Holds, Schema, TableRow


class Means(StrEnum):
    """The meanings of columns that are read."""

    OWN_ID = "own_id"
    ADDRESS = "address"
    NAME = "name"
    SUBJECT = "subject"
    TEXT = "text"
    PLANNED = "planned"
    SENDER = "sender"
    PRIORITY = "priority"
    READY = "ready"
    FILES = "files"  # a row that has some is refused: see decision 0042


class Tells(StrEnum):
    """The meanings of columns that are written."""

    STATUS = "status"
    PLANNED_FOR = "planned_for"
    SENT_AT = "sent_at"
    ERROR = "error"
    REPLIED_AT = "replied_at"
    REPLY = "reply"


LABELS: Mapping[Means | Tells, str] = {
    Means.OWN_ID: "Own id",
    Means.ADDRESS: "Recipient",
    Means.NAME: "Name",
    Means.SUBJECT: "Subject",
    Means.TEXT: "Text",
    Means.PLANNED: "Planned time",
    Means.SENDER: "Sender",
    Means.PRIORITY: "Priority",
    Means.READY: "Ready",
    Means.FILES: "Files",
    Tells.STATUS: "Status",
    Tells.PLANNED_FOR: "Planned for",
    Tells.SENT_AT: "Sent at",
    Tells.ERROR: "Error",
    Tells.REPLIED_AT: "Replied at",
    Tells.REPLY: "Reply",
}
TIMES = frozenset({Tells.PLANNED_FOR, Tells.SENT_AT, Tells.REPLIED_AT})
TITLES: Mapping[Means | Tells, str] = {
    Means.OWN_ID: r"(own |row |item |message )?id|key|no\.?|number",
    Means.ADDRESS: r"recipient( address)?|to|address|e-?mail( address)?|phone( number)?|mobile|whats ?app",
    Means.NAME: r"(recipient |full |contact )?name|contact",
    Means.SUBJECT: r"(email |mail )?subject",
    Means.TEXT: r"text|(email |mail )?body|message|content",
    Means.PLANNED: r"planned( send)?( at| time)?|send at|scheduled( for| at)?|date|when",
    Means.SENDER: r"sender( account)?|from|account",
    Means.PRIORITY: r"priority|urgency",
    Means.READY: r"ready|approved|send\??|go",
    Means.FILES: r"files?( & media)?|attachments?|enclosures?|media",
    Tells.STATUS: r"(paceline |send(ing)? |email )?status|state",
    Tells.PLANNED_FOR: r"(will be sent|planned for|leaves)( at)?",
    Tells.SENT_AT: r"sent( at| on)?",
    Tells.ERROR: r"error|problem|reason",
    Tells.REPLIED_AT: r"replied( at| on)?",
    Tells.REPLY: r"reply|answer",
}
YES = frozenset(
    {"yes", "y", "true", "1", "x", "ok", "ready", "approved", "done", "ja", "oui", "si", "sí", "ya", "是"}
)
LONGEST_ID = 200
NO_FILES = "Files of a table are not sent: empty this cell, or add the message with its file on the page of the queue."


class MappingError(ValueError):
    """The columns cannot be used like this. `field` says which choice is wrong."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = name


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The ids of the columns that are read and written, with their titles, and those that are variables."""

    reads: Mapping[Means, str] = field(default_factory=dict)
    tells: Mapping[Tells, str] = field(default_factory=dict)
    variables: Sequence[str] = ()
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def read(self) -> list[str]:
        return [*self.reads.values(), *self.variables]

    @property
    def all(self) -> list[str]:
        return [*self.read, *self.tells.values()]

    def as_json(self) -> dict[str, Any]:
        return {
            "reads": {str(means): key for means, key in self.reads.items()},
            "tells": {str(tells): key for tells, key in self.tells.items()},
            "variables": list(self.variables),
            "titles": {key: self.titles.get(key, key) for key in self.all},
        }


def columns_of(stored: Mapping[str, Any]) -> Columns:
    return Columns(
        reads={Means(name): key for name, key in stored.get("reads", {}).items()},
        tells={Tells(name): key for name, key in stored.get("tells", {}).items()},
        variables=tuple(stored.get("variables", ())),
        titles=stored.get("titles", {}),
    )


def guess(schema: Schema, *, with_own_id: bool) -> Columns:
    """Return what the titles of the columns say; each column means one thing."""
    taken: dict[str, Means | Tells] = {}
    order: list[Means | Tells] = [*Tells, *Means]
    for wanted in order:
        if wanted is Means.OWN_ID and not with_own_id:
            continue
        for column in schema.columns:
            if column.id in taken or wanted in taken.values():
                continue
            if _titled(column, wanted) and (isinstance(wanted, Means) or may_tell(column, wanted)):
                taken[column.id] = wanted
    return Columns(
        reads={wanted: key for key, wanted in taken.items() if isinstance(wanted, Means)},
        tells={wanted: key for key, wanted in taken.items() if isinstance(wanted, Tells)},
        titles={column.id: column.title for column in schema.columns},
    )


def _titled(column: Column, wanted: Means | Tells) -> bool:
    return re.fullmatch(TITLES[wanted], column.title.strip().replace("_", " "), re.IGNORECASE) is not None


def may_tell(column: Column, what: Tells) -> bool:
    """Decide whether a column can hold what is told."""
    match column.holds:
        case Holds.ANYTHING | Holds.TEXT:
            return True
        case Holds.DATE:
            return what in TIMES
        case Holds.CHOICE | Holds.STATUS:
            return what is Tells.STATUS
    return False


def check(
    columns: Columns, schema: Schema, *, words: Collection[str], repeated: Collection[str] = ()
) -> None:
    """Raise MappingError where the columns cannot be used; `words` are those of all states."""
    if Means.ADDRESS not in columns.reads:
        raise MappingError(Means.ADDRESS, "Choose the column with the address of the recipient.")
    seen: dict[str, str] = {}
    for name, key in _named(columns):
        column = schema.column(key)
        if column is None:
            raise MappingError(
                name, f"The column “{columns.titles.get(key, key)}” is gone. Choose another one."
            )
        if column.title in repeated:
            raise MappingError(name, f"Several columns are called “{column.title}”. Give each its own title.")
        if key in seen:
            raise MappingError(name, f"“{column.title}” is chosen twice. Each column means one thing.")
        seen[key] = name
    for tells, key in columns.tells.items():
        _check_told(tells, schema, key, words)


def _named(columns: Columns) -> Iterator[tuple[str, str]]:
    yield from ((str(means), key) for means, key in columns.reads.items())
    yield from (("variables", key) for key in columns.variables)
    yield from ((str(tells), key) for tells, key in columns.tells.items())


def _check_told(tells: Tells, schema: Schema, key: str, words: Collection[str]) -> None:
    column = schema.column(key)
    if column is None or not may_tell(column, tells):
        raise MappingError(tells, f"{LABELS[tells]} cannot be written there. Choose a column for text.")
    if column.holds is Holds.STATUS and (lacking := sorted(set(words) - set(column.words))):
        raise MappingError(
            tells,
            f"“{column.title}” lacks the options {', '.join(lacking)}. Add them in Notion, "
            "or choose a column for text or of the type Select.",
        )


def gone(columns: Columns, schema: Schema, *, repeated: Collection[str] = ()) -> str:
    """Return the sentence for columns that are no longer what they were; empty where all is well."""
    here = {column.id for column in schema.columns}
    lost = [columns.titles.get(key, key) for key in columns.all if key not in here]
    if lost:
        names = ", ".join(f"“{title}”" for title in lost)
        return f"The column {names} is gone or has another name. Rename it, or choose another one."
    twice = [key for key in columns.all if key in repeated]
    if twice:
        return f"Several columns are called “{twice[0]}”. Give each its own title."
    for tells, key in columns.tells.items():
        column = schema.column(key)
        if column is not None and not may_tell(column, tells):
            return f"{LABELS[tells]} can no longer be written to “{column.title}”, whose type was changed."
    return ""


def own_id_in(row: TableRow, columns: Columns) -> str:
    """Return the own id of a row; raise EntryError where it has none."""
    if Means.OWN_ID not in columns.reads:
        return row.own_id
    cell = _cell(row, columns, Means.OWN_ID)
    found = own_id_of(cell)
    title = columns.titles.get(columns.reads[Means.OWN_ID], "")
    if cell.error:
        raise EntryError(f"“{title}” {cell.error}.")
    if not found:
        raise EntryError(f"“{title}” is empty. Give the row an id of its own.")
    if len(found) > LONGEST_ID:
        raise EntryError(f"“{title}” is longer than {LONGEST_ID} characters. Shorten it.")
    return found


def is_ready(row: TableRow, columns: Columns) -> bool:
    """Decide whether the row says that it may be taken; every row may where no column says so."""
    if Means.READY not in columns.reads:
        return True
    return _cell(row, columns, Means.READY).text.strip().lower() in YES


def is_blank(row: TableRow, columns: Columns) -> bool:
    """Decide whether nothing was written into the row yet."""
    return not any(
        row.cells[key].text.strip() or row.cells[key].error
        for means, key in columns.reads.items()
        if key in row.cells and means not in {Means.OWN_ID, Means.READY}
    )


def entry_of(row: TableRow, columns: Columns, *, own_id: str, zone: str) -> Entry:
    """Return a row as an entry; raise EntryError with the reason."""
    for key in columns.read:
        if key in row.cells and row.cells[key].error:
            raise EntryError(f"“{columns.titles.get(key, key)}” {row.cells[key].error}.")
    if files := _text(row, columns, Means.FILES).strip():
        raise EntryError(f"“{files[:60]}” is a file. {NO_FILES}")
    return Entry(
        own_id=own_id,
        address=_text(row, columns, Means.ADDRESS).strip(),
        name=_text(row, columns, Means.NAME).strip(),
        subject=_text(row, columns, Means.SUBJECT).strip(),
        text=_text(row, columns, Means.TEXT),
        values=_values(row, columns),
        planned_at=_planned(row, columns, zone),
        sender=_text(row, columns, Means.SENDER).strip(),
        priority=read_priority(_text(row, columns, Means.PRIORITY)),
    )


def _values(row: TableRow, columns: Columns) -> dict[str, str]:
    found = {}
    for key in columns.variables:
        text = row.cells[key].text.strip() if key in row.cells else ""
        if name := variable_name(columns.titles.get(key, key)):
            found[name] = text
    return {name: text for name, text in found.items() if text}


def _planned(row: TableRow, columns: Columns, zone: str) -> datetime | None:
    """Return the planned time: that of a cell with a date is its number, since what it shows may mean two days."""
    cell = _cell(row, columns, Means.PLANNED)
    if cell.number is not None:
        try:
            return moment_of(cell.number).replace(tzinfo=ZoneInfo(zone))
        except (OverflowError, ValueError) as error:
            raise EntryError(f"“{cell.text[:40]}” is not a date and time.") from error
    text, _, named = cell.text.strip().removesuffix("]").partition("[")
    return read_time(text, named or zone)


def _cell(row: TableRow, columns: Columns, means: Means) -> Cell:
    key = columns.reads.get(means)
    return row.cells.get(key, Cell()) if key is not None else Cell()


def _text(row: TableRow, columns: Columns, means: Means) -> str:
    return _cell(row, columns, means).text
