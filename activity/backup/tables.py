"""The tables of a backup: which they are, and their rows out of and into the database by COPY.

COPY needs nothing but the connection that Paceline has: no `pg_dump` of the right version, no superuser. The rows of
all tables are of one snapshot, while everything runs.
"""

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.db import connection, transaction
from psycopg import sql

from activity.backup.manifest import BadBackupError, Table, digest_of

# What is not in a backup: log-ins, of which each row is a key to somebody's session; counts of wrong passwords; and the
# list of migrations, which a restore makes.
LEFT_OUT = frozenset(
    {
        "axes_accessattempt",
        "axes_accessattemptexpiration",
        "axes_accessfailurelog",
        "axes_accesslog",
        "django_migrations",
        "django_session",
        "usersessions_usersession",
    }
)
CHUNK = 1024 * 1024
AHEAD = (
    100_000  # numbers that are not given out again: rows of the lost time may be known elsewhere by theirs
)

Tell = Callable[[str, int], None]

TABLES = """
SELECT c.relname, greatest(c.reltuples, 0)::bigint,
       (SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
SEQUENCES = """
SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL
"""


@contextmanager
def snapshot() -> Iterator[datetime]:
    """Read everything inside as it is at one moment, which is yielded; nothing waits for it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT clock_timestamp()")
        yield cursor.fetchone()[0]


def known() -> list[tuple[str, int, list[str]]]:
    """Return the tables of a backup, each with about how many rows it has and its columns."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return [row for row in cursor.fetchall() if row[0] not in LEFT_OUT]


def sequences() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(SEQUENCES)
        return dict(cursor.fetchall())


def write(folder: Path, name: str, columns: Sequence[str], tell: Tell) -> Table:
    """Write the rows of one table into its file, and return what the manifest says about it."""
    file = f"tables/{name}.copy.gz"
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(name)
    )
    rows = 0
    with (
        connection.cursor() as cursor,
        gzip.GzipFile(folder / file, "wb", compresslevel=4, mtime=0) as out,
        cursor.copy(statement) as copy,
    ):
        for data in copy:
            out.write(data)
            lines = bytes(data).count(b"\n")  # a line break in a value is written as \n
            rows += lines
            tell(name, lines)
    return Table(name=name, columns=columns, rows=rows, file=file, sha256=digest_of(folder / file))


def load(folder: Path, table: Table, tell: Tell) -> None:
    """Put the rows of one file into its table, in place of the few that migrations have made."""
    target = sql.Identifier(table.name)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        target, sql.SQL(", ").join(map(sql.Identifier, table.columns))
    )
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DELETE FROM {}").format(target))
        with gzip.open(folder / table.file, "rb") as rows, cursor.copy(statement) as copy:
            while data := rows.read(CHUNK):
                copy.write(data)
                tell(table.name, data.count(b"\n"))
        if cursor.rowcount != table.rows:
            raise BadBackupError(f"{table.file} has {cursor.rowcount:,} rows and should have {table.rows:,}.")


SET_SEQUENCE = """
SELECT setval(%(name)s::regclass, least(%(value)s::bigint + CASE WHEN max_value > 2147483647 THEN %(ahead)s ELSE 0 END,
                                        max_value))
FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = %(name)s
"""


def set_sequences(values: dict[str, int]) -> None:
    """Let new rows get numbers that no row of the backup has, nor any that was made after it."""
    with connection.cursor() as cursor:
        for name, value in values.items():
            cursor.execute(SET_SEQUENCE, {"name": name, "value": value, "ahead": AHEAD})


FILLED = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
   AND NOT relispartition AND relname = ANY(%s)
"""
# An installation is empty while nobody and nothing is in these: migrations alone fill other tables.
TELLING = ("accounts_user", "accounts_account", "accounts_recipient", "reminders_reminder", "delivery_run")


def filled() -> list[str]:
    """Return the tables that show that this installation is in use."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(FILLED, [list(TELLING)])
        for (name,) in cursor.fetchall():
            cursor.execute(sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(name)))
            found += [name] if cursor.fetchone()[0] else []
    return found


# What an extension brought stays.
OURS = """
SELECT format('DROP TABLE IF EXISTS %I CASCADE', c.relname) FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
UNION ALL
SELECT format('DROP SEQUENCE IF EXISTS %I CASCADE', c.relname) FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S'
UNION ALL
SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', p.oid::regprocedure) FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""


def clear() -> None:
    """Drop the tables of an empty installation, so that they are made as they were when the backup was made."""
    if filled():
        raise BadBackupError("The installation is not empty.")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(OURS)
        for (statement,) in cursor.fetchall():
            cursor.execute(statement)
