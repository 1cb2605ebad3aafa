"""Writes many rows of a table in one statement, for imports: Django's own bulk methods take most of their time.

A column travels as one array. So a statement has as many arguments as columns, however many rows it writes.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.db.models import Field, Model

Row = TypeVar("Row", bound=Model)

INSERT = """
INSERT INTO {table} ({columns}) SELECT {values} FROM unnest({arrays}) AS n({columns}) {conflicts}
RETURNING {pk}, {key}
"""
# Locked in one order, so that two of these statements never wait for each other in a circle.
UPDATE = """
WITH locked AS MATERIALIZED (
    SELECT {pk} FROM {table} WHERE {pk} = ANY(%s::bigint[]) ORDER BY {pk} FOR NO KEY UPDATE
)
UPDATE {table} t SET {changes} FROM unnest(%s::bigint[], {arrays}) AS n({pk}, {columns}) JOIN locked USING ({pk})
WHERE t.{pk} = n.{pk}
"""


def insert(rows: Sequence[Row], *, key: str, ignore_conflicts: bool = False) -> list[Row]:
    """Insert rows that have no id yet, set their ids, and return those that were inserted.

    `key` is a field whose value differs in all of them. Where a row exists already, `ignore_conflicts` leaves it out.
    """
    if not rows:
        return []
    meta = rows[0]._meta
    columns = [field for field in meta.concrete_fields if not field.primary_key]
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT.format(
                conflicts="ON CONFLICT DO NOTHING" if ignore_conflicts else "",
                key=meta.get_field(key).column,  # type: ignore[union-attr] # a field with a column
                **_names(rows[0], columns),
            ),
            [_array(rows, field, add=True) for field in columns],
        )
        ids = {found: pk for pk, found in cursor.fetchall()}
    return [row for row in rows if _is_among(row, key, ids)]


def _is_among(row: Model, key: str, ids: dict[Any, int]) -> bool:
    row.pk = ids.get(getattr(row, key))
    row._state.adding = row.pk is None
    return row.pk is not None


def update(rows: Sequence[Model], fields: Iterable[str]) -> None:
    """Write these fields of rows that exist."""
    if not rows:
        return
    columns: list[Any] = [rows[0]._meta.get_field(name) for name in fields]
    ids = [row.pk for row in rows]
    changes = ", ".join(f'"{field.column}" = {_value(field)}' for field in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            UPDATE.format(changes=changes, **_names(rows[0], columns)),
            [ids, ids, *(_array(rows, field) for field in columns)],
        )


def _names(row: Model, columns: "Sequence[Field[Any, Any]]") -> dict[str, str]:
    """Return what the statements have in common, in SQL. All of it comes from the model."""
    return {
        "table": f'"{row._meta.db_table}"',
        "pk": f'"{row._meta.pk.column}"',
        "columns": ", ".join(f'"{field.column}"' for field in columns),
        "values": ", ".join(_value(field) for field in columns),
        "arrays": ", ".join(f"%s::{_kind(field)}[]" for field in columns),
    }


def _kind(field: "Field[Any, Any]") -> str:
    """Return the type in which a column travels."""
    kind = (field.rel_db_type if field.is_relation else field.db_type)(connection) or "text"
    return "text" if kind == "jsonb" or kind.startswith("varchar") else kind.removeprefix("serial ")


def _value(field: "Field[Any, Any]") -> str:
    return f'n."{field.column}"::jsonb' if field.db_type(connection) == "jsonb" else f'n."{field.column}"'


def _array(rows: Sequence[Model], field: "Field[Any, Any]", *, add: bool = False) -> list[Any]:
    found = (
        [field.pre_save(row, add) for row in rows] if add else [getattr(row, field.attname) for row in rows]
    )
    if field.db_type(connection) == "jsonb":
        return [None if value is None else json.dumps(value, cls=DjangoJSONEncoder) for value in found]
    return found
