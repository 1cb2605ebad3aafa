"""Pages of long lists. A cursor holds the position of the last row itself, so that it survives what happens to rows.

The next page begins behind that position, whether the row is still there or not, and rows that are added meanwhile
move nothing. Cursors are opaque to programs.
"""

import base64
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet

from accounts.paging import beyond
from api.problems import ProblemError, invalid
from api.schemas.base import Page
from config.web.json_bodies import require_storable

M = TypeVar("M", bound=Model)
T = TypeVar("T")


def page(
    rows: QuerySet[M],
    asked: Any,
    shown: Callable[[list[M]], list[T]],
    *,
    by: str = "id",
    newest_first: bool = False,
) -> Page[T]:
    """Return the page of `rows` behind the asked cursor, ordered by the column `by` and then by id."""
    if asked.cursor:
        rows = rows.filter(beyond(by, *_position(rows.model, by, asked.cursor), descending=newest_first))
    sign = "-" if newest_first else ""
    found = list(rows.order_by(f"{sign}{by}", f"{sign}id")[: asked.limit + 1])
    more, found = len(found) > asked.limit, found[: asked.limit]
    return Page(items=shown(found), next_cursor=_cursor(found[-1], by) if more else None)


def _cursor(row: Model, by: str) -> str:
    value = getattr(row, by)
    said = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([by, said, row.pk]).encode()).decode().rstrip("=")


def _position(model: type[Model], by: str, cursor: str) -> tuple[object, int]:
    """Return the value and the id in a cursor; raises a problem for one that another list or nobody has given."""
    try:
        column, said, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        value = model._meta.get_field(by).to_python(said)  # type: ignore[union-attr]  # columns alone are asked
        require_storable(value)
    except (ArithmeticError, ValueError, TypeError, RecursionError, ValidationError) as error:
        raise _strange() from error
    if (
        column != by
        or not (_fits(pk) and pk > 0)
        or value is None
        or (isinstance(value, datetime) and value.tzinfo is None)
        or (isinstance(value, int) and not _fits(value))
    ):
        raise _strange()
    return value, pk


def _fits(number: object) -> bool:
    """Decide whether this is a whole number that the database can compare with an id."""
    return type(number) is int and abs(number) < 2**63


def _strange() -> ProblemError:
    return invalid("cursor", "This cursor is from another list. Take next_cursor from the last page.")
