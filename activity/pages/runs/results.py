"""The results of a run, as lines of a file that a spreadsheet opens."""

from collections.abc import Iterator
from typing import Any

from delivery.lifecycle import CANCELED
from delivery.models import Run, RunTarget, target_key
from delivery.sentences.run_summary import canceled
from delivery.states import TargetStatus
from delivery.wording_results import has_wordings, letters_of

CHUNK = 2_000
TITLES = (
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
    "returned_at",
    "return_kind",
    "return_reason",
    "wording",
)
ERROR = TITLES.index("error")
COLUMNS = ("recipient__name", "recipient__address", "account__name", *TITLES[3:-1])


def result_lines(run: Run) -> Iterator[tuple[object, ...]]:
    """Yield the titles, then a line for each target. No transaction is open while a slow reader downloads."""
    yield TITLES
    if run.details_removed_at is not None:
        yield (f"Removed on {run.details_removed_at:%Y-%m-%d}: only the counts of this run are kept.",)
    for status in TargetStatus:
        after = 0
        while rows := _rows(run, status, after):
            yield from ((*_told(run, row[1:]), wording(run, row[0])) for row in rows)
            after = rows[-1][0]


def wording(run: Run, target_id: int) -> str:
    """Return the letters of the wordings that a target gets; empty where there is only one."""
    return letters_of(run, target_key(run.key, target_id)) if has_wordings(run) else ""


def _told(run: Run, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the line; where a person canceled the message it says who and when, as the pages do."""
    if row[ERROR] != CANCELED:
        return row
    return (*row[:ERROR], canceled(run), *row[ERROR + 1 :])


def _rows(run: Run, status: str, after: int) -> list[tuple[Any, ...]]:
    targets = RunTarget.objects.filter(run=run, status=status, pk__gt=after).order_by("pk")[:CHUNK]
    return [tuple(row) for row in targets.values_list("pk", *COLUMNS)]
