"""Runs the engine's own SQL as prepared statements: planning them anew cost more than running them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.types.numeric import Int8

from delivery.engine.database_contact import contact, parameters

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[T]):
    """A statement with its arguments, and how its rows are read."""

    sql: str
    arguments: Mapping[str, Any]
    read: Callable[[Rows], T]


def run(query: Query[T]) -> T:
    """Run a query on Django's own connection and return its answer."""
    return query.read(execute(query.sql, query.arguments))


def execute(sql: str, arguments: Mapping[str, Any]) -> Rows:
    """Run a statement and return its rows.

    It uses Django's own connection, its transaction if there is one, and its errors.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, _typed(arguments), prepare=_prepared())
        contact.note()
        return cursor.fetchall() if cursor.description else []


def _prepared() -> bool:
    """Decide whether to prepare: a prepared statement is unknown on the next connection that PgBouncer gives."""
    return not settings.PGBOUNCER


def _typed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Send numbers always as the same type: PostgreSQL would plan each combination of types by itself."""
    return {name: Int8(value) if type(value) is int else value for name, value in arguments.items()}


class Line:
    """A connection of an event loop's own, made when it is needed. Each statement is a transaction.

    Two threads that hand a statement to each other wait for the interpreter longer than PostgreSQL works on it.
    Errors are psycopg's own; after one of the connection the next statement makes a new one.
    """

    def __init__(self) -> None:
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._lock = asyncio.Lock()

    async def run(self, query: Query[T]) -> T:
        async with self._lock:
            line = await self._connected()
            cursor = await line.execute(query.sql, _typed(query.arguments), prepare=_prepared())
            rows = await cursor.fetchall()
            contact.note()
            return query.read(rows)

    async def open(self) -> None:
        async with self._lock:
            await self._connected()

    async def close(self) -> None:
        async with self._lock:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None

    async def _connected(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        if self._connection is None or self._connection.broken or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(**parameters(), autocommit=True)
        return self._connection
