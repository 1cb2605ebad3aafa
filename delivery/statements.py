"""Runs the engine's own SQL as prepared statements: planning them anew cost more than running them."""

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import connection
from psycopg.types.numeric import Int8


def execute(sql: str, arguments: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows that a statement answers with.

    On Django's own connection, in its transaction if there is one, and with its errors. Numbers are always sent as
    the same type, since each combination of types would be planned by itself.
    """
    typed = {name: Int8(value) if type(value) is int else value for name, value in arguments.items()}
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, typed, prepare=True)
        return cursor.fetchall() if cursor.description else []
