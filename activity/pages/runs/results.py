"""A run's results as a table that a spreadsheet opens."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from accounts.downloads import cell
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus

CHUNK = 2000
COLUMNS = (
    "recipient",
    "address",
    "account",
    "status",
    "error",
    "attempts",
    "settled_at",
    "delivered_at",
    "read_at",
    "provider_id",
)


def as_csv(run: Run) -> Iterator[bytes]:
    """Chunk by chunk: memory stays flat, and no transaction is open while a slow reader downloads."""
    yield b"\xef\xbb\xbf" + _lines([COLUMNS])  # the mark by which Excel knows UTF-8
    for status in TargetStatus:
        after = 0
        while rows := _rows(run, status, after):
            yield _lines([row[1:] for row in rows])
            after = rows[-1][0]


def _rows(run: Run, status: str, after: int) -> list[tuple[Any, ...]]:
    targets = RunTarget.objects.filter(run=run, status=status, pk__gt=after).order_by("pk")[:CHUNK]
    values = (
        "pk",
        "recipient__name",
        "recipient__address",
        "account__name",
        "status",
        "error",
        "attempts",
        "settled_at",
        "delivered_at",
        "read_at",
        "provider_id",
    )
    return [tuple(row) for row in targets.values_list(*values)]


def _lines(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat(timespec="seconds"))
    return cell(value)
