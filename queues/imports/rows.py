"""Reads one row of a file: an item, or the reason why the row is none."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from accounts.imports.rows import clean
from accounts.imports.sheets import Sheet, from_first_filled
from queues.entries import Entry, EntryError, read_priority, read_time
from queues.imports.columns import OWN_ID, PLANNED, PRIORITY, VARIABLE
from queues.models import QueueImport

# The values that spreadsheets show where a formula has none: nobody gets “Dear #REF!”.
ERRORS = frozenset(
    {"#REF!", "#N/A", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!", "#ERROR!"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. `number` is its number in the spreadsheet; a row with a problem is no item."""

    number: int
    entry: Entry
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class RowReader:
    """Reads the rows of one file. It makes up own ids where no column has them.

    A made-up id is that of the content, so the same file a second time names the same items; rows that say the same
    are numbered.
    """

    columns: Sequence[dict[str, Any]]
    zone: str
    seen: Counter[bytes] = field(default_factory=Counter)
    ids: set[bytes] = field(default_factory=set)

    def read(self, number: int, cells: Sequence[str]) -> Row | None:
        """Return the row as it would be saved, or None where it is empty."""
        values = [clean(cell) for cell in cells]
        if not any(values):
            return None
        given: dict[str, str] = {}
        own: dict[str, str] = {}
        problem = ""
        for column, value in zip(self.columns, values, strict=False):
            if column["means"] and value in ERRORS:
                problem = problem or f"“{column['title']}” shows the error {value}. Correct its formula."
            if column["means"] == VARIABLE and value:
                own[column["variable"]] = value
            elif column["means"]:
                given[column["means"]] = value
        texts = {name: value for name, value in given.items() if name not in {OWN_ID, PLANNED, PRIORITY}}
        entry = Entry(own_id=given.get(OWN_ID, ""), values=own, **texts)  # type: ignore[arg-type]
        try:
            entry = replace(
                entry,
                planned_at=read_time(given.get(PLANNED, ""), self.zone),
                priority=read_priority(given.get(PRIORITY, "")),
            )
            entry = self._named(entry)
        except EntryError as error:
            return Row(number=number, entry=entry, problem=problem or str(error))
        return Row(number=number, entry=entry, problem=problem)

    def _named(self, entry: Entry) -> Entry:
        if not entry.own_id:
            mark = bytes.fromhex(entry.fingerprint()[:32])
            self.seen[mark] += 1
            return replace(entry, own_id=f"row-{mark.hex()}-{self.seen[mark]}")
        mark = hashlib.sha256(entry.own_id.encode()).digest()[:16]
        if mark in self.ids:
            raise EntryError(f"An earlier row has the id “{entry.own_id[:60]}” too.")
        self.ids.add(mark)
        return entry


def rows_of(job: QueueImport, sheet: Sheet) -> Iterator[Row]:
    """Yield the filled rows of a file, in their order."""
    reader = RowReader(columns=job.columns, zone=job.queue.zone)
    for number, cells in islice(from_first_filled(sheet), 1 if job.header else 0, None):
        row = reader.read(number, cells)
        if row is not None:
            yield row
