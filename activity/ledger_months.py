"""The tables that the ledger consists of: one for each month, made ahead of time and removed as a whole.

| table | rows |
|---|---|
| `activity_attempt_before` | all until the month in which the ledger was divided |
| `activity_attempt_2027_03` | the attempts that began in that month, in UTC |
| `activity_attempt_rest` | those of a month that has no table: a row is never refused, so sending never stops |

Making a table waits for nobody who reads or writes months that exist. Where a lock is not free within `LOCK_MS`, it is
tried again later: there are months in between.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.utils import OperationalError

log = structlog.get_logger(__name__)

AHEAD = 3  # months after the present one
LOCK_MS = 300  # for so long at most, others wait behind us
MOST_MOVED = 50_000  # rows of the rest: about a second's work, in which new rows of their month wait
REST = "activity_attempt_rest"
# Rows are only added: each 200,000 of them, their pages are marked as readable from an index alone.
STORAGE = (
    "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000, "
    "autovacuum_analyze_scale_factor = 0.02"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A table of the ledger with its time; `since` is None for the first one."""

    table: str
    since: datetime | None
    until: datetime

    def holds(self, moment: datetime) -> bool:
        return (self.since is None or self.since <= moment) and moment < self.until


def month_of(moment: datetime) -> datetime:
    """Return the beginning of a moment's month, in UTC."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def next_month(month: datetime) -> datetime:
    return month_of(month + timedelta(days=32))


def table_of(month: datetime) -> str:
    return f"activity_attempt_{month:%Y_%m}"


PARTS = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'activity_attempt'::regclass AND c.relname <> %(rest)s ORDER BY c.relname
"""
BOUNDS = re.compile(r"FROM \((?:MINVALUE|'(?P<since>.+?)')\) TO \('(?P<until>.+?)'\)")


def parts() -> list[Part]:
    """Return the tables of the ledger but the rest."""
    with connection.cursor() as cursor:
        cursor.execute(PARTS, {"rest": REST})
        return [_part(table, bounds) for table, bounds in cursor.fetchall()]


def _part(table: str, bounds: str) -> Part:
    found = BOUNDS.search(bounds)
    if found is None:
        raise ValueError(f"{table} is divided in a way that is not known: {bounds}")
    since, until = found["since"], found["until"]
    return Part(
        table=table,
        since=datetime.fromisoformat(since) if since else None,
        until=datetime.fromisoformat(until),
    )


IN_REST = f"""
SELECT DISTINCT date_trunc('month', at, 'UTC') FROM (SELECT at FROM {REST} LIMIT {2 * MOST_MOVED}) looked_at
"""  # noqa: S608 - our own names


def missing(now: datetime) -> list[datetime]:
    """Return the months without a table: of the present and the next ones, and those of rows in the rest."""
    known, month = parts(), month_of(now)
    wanted = {month_of(moment) for (moment,) in _run(IN_REST)}
    for _ in range(AHEAD + 1):
        wanted.add(month)
        month = next_month(month)
    return sorted(month for month in wanted if not any(part.holds(month) for part in known))


def make_ahead(now: datetime, *, most: int | None = MOST_MOVED) -> list[str]:
    """Make the tables that are missing; return those that could not be made this time.

    None is made while the rest has more than `most` rows.
    """
    return [table_of(month) for month in missing(now) if not make(month, most=most)]


def make(month: datetime, *, most: int | None = MOST_MOVED) -> bool:
    """Make the table of a month, with its rows out of the rest; return whether it is there now."""
    try:
        with transaction.atomic():
            return _make(month, most)
    except OperationalError as error:  # somebody reads the rest for long
        log.warning("ledger_month_later", month=table_of(month), error=str(error))
        return False


def _make(month: datetime, most: int | None) -> bool:
    table, since, until = table_of(month), month, next_month(month)
    _run("SELECT set_config('lock_timeout', %s, true)", f"{LOCK_MS}ms")
    _run("SELECT pg_advisory_xact_lock(hashtext('ledger months'))")
    if any(part.table == table for part in parts()):
        return True  # made by another process meanwhile
    _run(f"LOCK TABLE {REST} IN ACCESS EXCLUSIVE MODE")  # a row of this month must not come in between
    if most is not None and in_rest(most=most) > most:
        log.error("ledger_rest_is_long", month=table, most=most)
        return False
    _run(f"CREATE TABLE {table} (LIKE activity_attempt INCLUDING ALL, PRIMARY KEY (id)) WITH ({STORAGE})")
    _run(
        f"WITH moved AS (DELETE FROM {REST} WHERE at >= %s AND at < %s RETURNING *) "  # noqa: S608 - our own names
        f"INSERT INTO {table} SELECT * FROM moved",
        since,
        until,
    )
    _run(f"ALTER TABLE activity_attempt ATTACH PARTITION {table} FOR VALUES FROM (%s) TO (%s)", since, until)
    log.info("ledger_month_made", month=table)
    return True


def in_rest(*, most: int) -> int:
    """Count the rows of months without a table, up to one more than `most`."""
    [(count,)] = _run(f"SELECT count(*) FROM (SELECT 1 FROM {REST} LIMIT %s) counted", most + 1)  # noqa: S608
    return int(count)


SIZES = """
SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'activity_attempt'::regclass ORDER BY c.relname
"""


def sizes() -> list[tuple[str, int, int]]:
    """Return all tables of the ledger with their bytes and, about, their rows."""
    return [(str(table), int(size), int(rows)) for table, size, rows in _run(SIZES)]


def before(border: datetime) -> list[Part]:
    """Return the tables whose months were over at the border."""
    return [part for part in parts() if part.until <= border]


def count(part: Part) -> int:
    [(count,)] = _run(f"SELECT count(*) FROM {part.table}")  # noqa: S608
    return int(count)


def drop(part: Part) -> bool:
    """Remove a table of the ledger; return whether its lock was free. All who use the ledger wait for it meanwhile."""
    try:
        with transaction.atomic():
            _run("SELECT set_config('lock_timeout', %s, true)", f"{LOCK_MS}ms")
            _run(f"DROP TABLE {part.table}")
    except OperationalError as error:
        log.warning("ledger_month_stays", month=part.table, error=str(error))
        return False
    log.info("ledger_month_dropped", month=part.table)
    return True


def _run(statement: str, *arguments: str | int | datetime | None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return cursor.fetchall() if cursor.description else []
