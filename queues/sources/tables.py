"""A table of any service: its columns, its rows in portions, and cells that are written."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

Cursor = dict[str, Any]
Value = str | datetime | None


class Holds(StrEnum):
    """The values that the cells of a column can hold."""

    TEXT = "text"
    DATE = "date"
    CHOICE = "choice"  # one of some words; a new word is added by writing it
    STATUS = "status"  # one of some words; a new word is refused
    TICK = "tick"
    ANYTHING = "anything"  # a cell of a sheet
    FIXED = "fixed"  # what people and programs cannot write: formulas, times of change


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. Its `id` stays the same as long as the service calls it the same column."""

    id: str
    title: str
    holds: Holds
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The columns of a table; `zone` is that of times without one, where the table has its own."""

    title: str
    columns: tuple[Column, ...]
    zone: str = ""

    def column(self, key: str) -> Column | None:
        return next((column for column in self.columns if column.id == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: the text that it shows, its number where it is one, and its error, such as that of a formula."""

    text: str = ""
    number: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row, with where it is found again, and its cells by the id of their column."""

    place: str
    cells: Mapping[str, Cell]
    own_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Some rows in their order, and where the next ones begin; None behind the last one."""

    rows: Sequence[TableRow]
    cursor: Cursor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Cells of one row to write, by the id of their column. `place` may be outdated where rows can move."""

    own_id: str
    place: str
    cells: Mapping[str, Value]


class Ended(StrEnum):
    """The ways in which writing one row ends."""

    WRITTEN = "written"
    GONE = "gone"  # the row is deleted: nobody is left to tell
    LATER = "later"  # somebody else is writing it
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    change: Change
    ended: Ended
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The own ids that a whole table has at one moment, and those that several rows have."""

    once: Collection[str] = field(default_factory=frozenset)
    repeated: Collection[str] = field(default_factory=frozenset)


class Table(Protocol):
    """A table of a service. Every method may raise a Trouble."""

    def schema(self) -> Schema: ...

    def portion(self, cursor: Cursor, columns: Collection[str]) -> Portion:
        """Return the next rows behind the cursor with the cells of these columns; {} begins."""
        ...

    def known(self) -> Known | None:
        """Return the own ids of all rows as they are at one moment, where the service can tell them at once."""
        ...

    def write(self, changes: Sequence[Change]) -> Iterator[Written]:
        """Write the changes and say of each how it ended; a Trouble in between leaves the rest unwritten."""
        ...

    def close(self) -> None: ...


def written_number(number: float | None) -> str:
    """Return a number as a person writes it: 60123456789 and not 60123456789.0."""
    if number is None:
        return ""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(number)
