"""Reads one row of a file: a recipient, or the reason why the row is not one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accounts.addresses import BadAddressError, canonical
from accounts.imports.columns import ADDRESS, NAME, TAGS, VARIABLE, Column

LONGEST_NAME, LONGEST_TAG, LONGEST_VALUE = 200, 60, 1_000
FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The settings by which the rows of one file are read."""

    channel: str
    region: str
    columns: Sequence[Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. `number` is its number in the spreadsheet. When there is no problem, the address is canonical."""

    number: int
    written: str
    address: str = ""
    kind: str = ""
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    problem: str = ""


def read_row(number: int, cells: Sequence[str], reading: Reading) -> Row | None:
    """Return the row as it would be saved, or None when it is empty."""
    values = [clean(cell) for cell in cells]
    if not any(values):
        return None
    written, name, tags, fields = "", "", list[str](), dict[str, str]()
    for column, value in zip(reading.columns, values, strict=False):
        if column.means == ADDRESS:
            written = value
        elif column.means == NAME:
            name = value
        elif column.means == TAGS:
            tags = split_tags(value)
        elif column.means == VARIABLE and value:
            fields[column.variable] = value
    try:
        found = canonical(reading.channel, written, region=reading.region)
        _check_lengths(name, tags, fields)
    except (BadAddressError, RowError) as refusal:
        return Row(number=number, written=written[:255], name=name[:LONGEST_NAME], problem=str(refusal))
    return Row(
        number=number,
        written=written[:255],
        address=found.text,
        kind=found.kind,
        name=name,
        fields=fields,
        tags=tags,
    )


def clean(cell: str) -> str:
    """Return the cell without the ' that keeps a spreadsheet from reading a formula; our own export writes one."""
    cell = cell.strip()
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def split_tags(text: str) -> list[str]:
    """Return the tags, separated by commas, semicolons or bars, each once."""
    parts = (" ".join(part.split()) for part in text.replace(";", ",").replace("|", ",").split(","))
    return list(dict.fromkeys(part for part in parts if part))


class RowError(ValueError):
    """The row cannot be imported. The text says why."""


def _check_lengths(name: str, tags: Sequence[str], fields: dict[str, str]) -> None:
    if len(name) > LONGEST_NAME:
        raise RowError(f"The name is longer than {LONGEST_NAME} characters. Shorten it.")
    for tag in tags:
        if len(tag) > LONGEST_TAG:
            raise RowError(f"The tag “{tag[:20]}…” is longer than {LONGEST_TAG} characters. Shorten it.")
    for variable, value in fields.items():
        if len(value) > LONGEST_VALUE:
            raise RowError(
                f"The value of “{variable}” is longer than {LONGEST_VALUE:,} characters. Shorten it."
            )
