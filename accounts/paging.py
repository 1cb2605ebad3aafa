"""Finds one page of a long list by the row next to it, so that the last page is as fast as the first.

The address holds only the id of that row (`?after=120`), so a link still works when rows are added or removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import IntegerField, Model, Q, QuerySet, Subquery

M = TypeVar("M", bound=Model)

PAGE_SIZE = 50
COUNTED = 5_000  # rows; a higher count costs more than it is worth
MOST_SHOWN = 10_000  # of the size of a tag or a choice: beyond it, it is large


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[M]):
    """The rows, and the neighbouring pages: `before` and `after` are ids, or None at an end of the list."""

    rows: Sequence[M]
    before: int | None
    after: int | None


def page_of(
    rows: QuerySet[M],
    address: Mapping[str, str],
    *,
    by: str = "id",
    newest_first: bool = False,
    size: int = PAGE_SIZE,
) -> Page[M]:
    """Return the page of `rows` that the address asks for, ordered by the column `by`, then by id."""
    backwards = "before" in address
    anchor = _anchor(rows, address.get("before") or address.get("after") or "", by)
    descending = newest_first != backwards
    if anchor is not None:
        rows = rows.filter(beyond(by, *anchor, descending=descending))
    sign = "-" if descending else ""
    found = list(rows.order_by(f"{sign}{by}", f"{sign}id")[: size + 1])
    more, found = len(found) > size, found[:size]
    if backwards and anchor is not None:
        return _page(found[::-1], before=more, after=True)
    return _page(found, before=anchor is not None, after=more)


def _page(rows: list[M], *, before: bool, after: bool) -> Page[M]:
    return Page(
        rows=rows,
        before=rows[0].pk if rows and before else None,
        after=rows[-1].pk if rows and after else None,
    )


def _anchor(rows: QuerySet[M], pk: str, by: str) -> tuple[object, int] | None:
    """Return the position of the row with that id, or None when the row does not exist."""
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    return rows.order_by().filter(pk=int(pk)).values_list(by, "id").first()


def beyond(by: str, value: object, pk: int, *, descending: bool) -> Q:
    """Return the condition for rows after (value, pk). The outer bound lets the index find the position."""
    way = "lt" if descending else "gt"
    return Q(**{f"{by}__{way}e": value}) & (Q(**{f"{by}__{way}": value}) | Q(**{f"id__{way}": pk}))


class AtLeast(int):
    """A number that was not counted to the end, and says so."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


def counted(rows: QuerySet[Any], *, searched: bool = False) -> int:
    """Return how many rows there are, as far as it is cheap to count.

    The order stays although a count needs none: with it the planner uses the same index as the page.
    """
    most = COUNTED // 5 if searched else COUNTED  # each row of a search may cost some that are not found
    found = rows[: most + 1].count()
    return found if found <= most else AtLeast(most)


class Size(Subquery):
    """Counts rows of another table in the same statement, up to one more than `MOST_SHOWN`."""

    template = "(SELECT count(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def size_of(rows: QuerySet[Any]) -> Size:
    """Return the expression for the number of `rows`, of which as many are read as are shown; see `shown`."""
    return Size(rows.order_by()[: MOST_SHOWN + 1])


def shown(number: int) -> int:
    """Return a size that was counted up to one more than `MOST_SHOWN`, as a page shows it: 10,000+."""
    return number if number <= MOST_SHOWN else AtLeast(MOST_SHOWN)


def at_most_shown(rows: QuerySet[Any]) -> int:
    """Count rows as far as a page shows their number."""
    return shown(rows.order_by()[: MOST_SHOWN + 1].count())
