"""Reads what a migration does to the database, and says what of it the release before would not survive.

During a rolling update both releases work on one database: the new one has migrated it, the old one still serves
pages and sends. So nothing may go away that the old one names, nothing may be demanded that it does not write, and no
statement may lock a long table for longer than a moment.

The statements themselves are judged, since a model's default or an operation of one's own says little about them. A
statement that is not known to be safe counts as unsafe.
"""

import re
from collections.abc import Iterator

import sqlparse
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.operations import RunPython
from django.db.migrations.state import ProjectState

# Tables that grow with every message, recipient or event: a lock on one of them stops all sending.
LONG = frozenset(
    {
        "accounts_importrow",
        "accounts_recipient",
        "accounts_recipient_tags",
        "activity_attempt",
        "activity_inbound",
        "activity_notification",
        "delivery_runtarget",
        "reminders_followup",
    }
)

NAME = r'(?:"?\w+"?\.)?"?(\w+)"?'
CREATE_TABLE = re.compile(rf"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?{NAME}", re.IGNORECASE)
DROP_TABLE = re.compile(rf"DROP TABLE (?:IF EXISTS )?{NAME}", re.IGNORECASE)
ALTER_TABLE = re.compile(rf"ALTER TABLE (?:IF EXISTS )?(?:ONLY )?{NAME} (.*)", re.IGNORECASE)
CREATE_INDEX = re.compile(
    rf'CREATE (UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?"?(\w+)"? ON (?:ONLY )?{NAME}', re.IGNORECASE
)
DROP_INDEX = re.compile(rf"DROP INDEX (CONCURRENTLY )?(?:IF EXISTS )?{NAME}", re.IGNORECASE)
ROWS = re.compile(rf"(?:UPDATE|DELETE FROM|INSERT INTO) (?:ONLY )?{NAME}", re.IGNORECASE)
COLUMN = re.compile(r'(?:ADD|ALTER|DROP) COLUMN (?:IF (?:NOT )?EXISTS )?"?(\w+)"?', re.IGNORECASE)
CONSTRAINT = re.compile(r'(?:ADD|VALIDATE) CONSTRAINT "?(\w+)"?', re.IGNORECASE)
HARMLESS = re.compile(r"(?:SET CONSTRAINTS|COMMENT ON|ANALYZE|SELECT|CREATE SEQUENCE|--|/\*)", re.IGNORECASE)
# Each takes a lock that lets reading and writing go on, or takes it for a moment.
HARMLESS_CHANGES = re.compile(
    r"(?:SET \(|RESET \(|DROP CONSTRAINT|VALIDATE CONSTRAINT|DETACH PARTITION .* CONCURRENTLY"
    r"|ALTER COLUMN \S+ (?:SET DEFAULT|DROP NOT NULL|SET STATISTICS|SET STORAGE))",
    re.IGNORECASE,
)


class Reading:
    """The facts learned from the statements so far, over all migrations that are new."""

    def __init__(self) -> None:
        self.new_tables: set[str] = set()  # the release before does not know them
        self.new_columns: set[tuple[str, str]] = set()
        self._not_valid: set[str] = set()  # tables with a constraint added in the migration that is read

    def begin(self) -> None:
        """Note that another migration begins: it has a transaction of its own."""
        self._not_valid.clear()

    def problems(self, statement: str) -> Iterator[str]:
        """Yield a short sentence for each thing in a statement that is unsafe beside the release before."""
        text = " ".join(sqlparse.format(statement, strip_comments=True).split()).rstrip(";")
        if not text or HARMLESS.match(text):
            return
        if found := CREATE_TABLE.match(text):
            self.new_tables.add(found[1])
        elif found := DROP_TABLE.match(text):
            yield from self._unless_new(found[1], f"drops the table {found[1]}")
        elif found := ALTER_TABLE.match(text):
            if found[1] not in self.new_tables:
                yield from self._change(found[1], found[2])
        elif found := CREATE_INDEX.match(text):
            yield from self._index(found[4], found[3], unique=bool(found[1]), concurrently=bool(found[2]))
        elif found := DROP_INDEX.match(text):
            if not found[1]:
                yield f"drops the index {found[2]} without CONCURRENTLY"
        elif found := ROWS.match(text):
            yield from self._unless_new(found[1], f"changes rows of {found[1]}")
        else:
            yield f"runs a statement that is not known to be safe: {text[:60]}"

    def _unless_new(self, table: str, problem: str) -> Iterator[str]:
        if table not in self.new_tables:
            yield problem

    def _index(self, table: str, name: str, *, unique: bool, concurrently: bool) -> Iterator[str]:
        if table in self.new_tables:
            return
        if table in LONG and not concurrently:
            yield f"builds the index {name} on {table} without CONCURRENTLY"
        if unique:
            yield f"adds the rule {name} to {table}"

    def _change(self, table: str, change: str) -> Iterator[str]:
        """Judge what an ALTER TABLE of a known table changes."""
        upper = change.upper()
        if upper.startswith("RENAME"):
            yield f"renames in {table}: {change.replace(chr(34), '')}"
        elif upper.startswith("ADD CONSTRAINT"):
            yield from self._constraint(table, change)
        elif upper.startswith("VALIDATE CONSTRAINT") and table in self._not_valid:
            yield f"validates a rule of {table} in the migration that adds it"
        elif HARMLESS_CHANGES.match(change):
            return
        elif found := COLUMN.match(change):
            yield from self._column(table, found[1], change)
        else:
            yield f"changes {table} in a way that is not known to be safe: {change[:60]}"

    def _constraint(self, table: str, change: str) -> Iterator[str]:
        found = CONSTRAINT.match(change)
        name = found[1] if found else "?"
        if "NOT VALID" in change.upper():
            self._not_valid.add(table)
        elif table in LONG and "USING INDEX" not in change.upper():
            yield f"adds the rule {name} to {table} without NOT VALID"
        yield f"adds the rule {name} to {table}"

    def _column(self, table: str, column: str, change: str) -> Iterator[str]:
        upper = change.upper()
        if upper.startswith("ADD COLUMN"):
            self.new_columns.add((table, column))
            yield from self._new_column(table, column, upper)
        elif upper.startswith("DROP COLUMN"):
            if (table, column) not in self.new_columns:
                yield f"drops {table}.{column}"
        elif upper.endswith("DROP DEFAULT"):
            yield f"takes the default off {table}.{column}"
        elif upper.endswith("SET NOT NULL"):
            yield f"demands a value of {table}.{column}"
        else:
            yield f"changes the type of {table}.{column}"

    def _new_column(self, table: str, column: str, upper: str) -> Iterator[str]:
        if "GENERATED ALWAYS AS" in upper and "STORED" in upper:
            yield f"rewrites {table} for {table}.{column}"
        elif " NOT NULL" in upper and " DEFAULT " not in upper and " IDENTITY" not in upper:
            yield f"demands a value of {table}.{column}"
        if table in LONG and re.search(r" (?:UNIQUE|PRIMARY KEY|REFERENCES)\b", upper):
            yield f"locks {table} while it checks {table}.{column}"


def problems_of(migration: Migration, state: ProjectState, reading: Reading) -> list[str]:
    """Return what is unsafe about a migration; `state` is the one before it, and afterwards the one after it."""
    reading.begin()
    found: list[str] = []
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        for operation in migration.operations:
            if isinstance(operation, RunPython):
                found.append("runs Python, which cannot be read here")
            before = state.clone()
            operation.state_forwards(migration.app_label, state)
            editor.collected_sql = []
            editor.deferred_sql = []
            operation.database_forwards(migration.app_label, editor, before, state)
            for statement in [*editor.collected_sql, *map(str, editor.deferred_sql)]:
                for one in _split(statement):
                    found += reading.problems(one)
        editor.deferred_sql = []
    return sorted(set(found))


def _split(statement: str) -> list[str]:
    return [statement] if "$$" in statement else sqlparse.split(statement)
