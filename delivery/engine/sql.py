"""Runs the engine's own SQL as prepared statements: planning them anew cost more than running them.

A prepared statement is planned once, perhaps while its tables were empty and were never analysed, and its plan is kept.
So the planner is not asked what is cheap: each of these statements looks rows up by key, whatever the statistics say,
and joins its tables in the order in which they are written.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.types.numeric import Int8

from delivery.engine.database_contact import contact, parameters

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[T]):
    """A statement with its arguments, and how its rows are read.

    `then` is a statement with the same arguments that follows in the same transaction; nothing of it is read.
    """

    sql: str
    arguments: Mapping[str, Any]
    read: Callable[[Rows], T]
    then: str = ""


# Until the end of the transaction: nothing of this stays with a connection that others use, or that PgBouncer shares.
BY_KEYS: Final = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('join_collapse_limit', '1', true)
"""


def run(query: Query[T]) -> T:
    """Run a query on Django's own connection and return its answer."""
    statements = [query.sql, query.then] if query.then else [query.sql]
    return query.read(execute_all(statements, query.arguments, answer=0))


def execute(sql: str, arguments: Mapping[str, Any]) -> Rows:
    """Run a statement and return its rows."""
    return execute_all([sql], arguments)


def execute_all(statements: Sequence[str], arguments: Mapping[str, Any], *, answer: int = -1) -> Rows:
    """Run statements with the same arguments in one transaction and one round trip; return the rows of one, the last.

    They use Django's own connection, its transaction if there is one, and its errors.
    """
    connection.ensure_connection()
    line, typed = connection.connection, _typed(arguments)
    cursors = [psycopg.Cursor(line) for _ in statements]
    with connection.wrap_database_errors:
        # A transaction that somebody else began goes on after this: its plans are not touched.
        with nullcontext() if connection.in_atomic_block else _together(line):
            for cursor, sql in zip(cursors, statements, strict=True):
                cursor.execute(sql, typed, prepare=_prepared())
        contact.note()
        return cursors[answer].fetchall() if cursors[answer].description else []


@contextmanager
def _together(line: psycopg.Connection[Any]) -> Iterator[None]:
    """Send statements in one round trip and one transaction, with plans by keys."""
    with line.pipeline():
        line.execute(BY_KEYS, prepare=_prepared())
        yield


def _prepared() -> bool:
    """Decide whether to prepare: a prepared statement is unknown on the next connection that PgBouncer gives."""
    return not settings.PGBOUNCER


def _typed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Send numbers always as the same type: PostgreSQL would plan each combination of types by itself."""
    return {name: Int8(value) if type(value) is int else value for name, value in arguments.items()}


def array(values: Iterable[object]) -> str:
    """Return numbers, times or truths as PostgreSQL writes an array of them: psycopg takes ten times as long."""
    return f"{{{','.join(['NULL' if value is None else str(value) for value in values])}}}"


def text_array(values: Iterable[str | None]) -> str:
    """Return texts as PostgreSQL writes an array of them."""
    return f"{{{','.join([_quoted(value) for value in values])}}}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    if "\\" in text or '"' in text:
        text = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{text}"'


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
            async with line.pipeline():
                await line.execute(BY_KEYS, prepare=_prepared())
                typed = _typed(query.arguments)
                cursor = await line.execute(query.sql, typed, prepare=_prepared())
                if query.then:
                    await line.execute(query.then, typed, prepare=_prepared())
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
