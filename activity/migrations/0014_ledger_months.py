"""Divides the ledger into a table per month. No row is copied: the table as it is becomes the first part.

Everything that takes long runs beside those who read and write. The exchange itself takes a lock for some
milliseconds, and gives up after three seconds of waiting for it: then run the migration again.
"""

from datetime import UTC, datetime, timedelta

from django.db import migrations, transaction

# The first part takes all rows until a month begins that is at least so far away: the rule holds from the first
# statement on, and a migration that was interrupted must not refuse rows before somebody runs it again.
FAR_ENOUGH = timedelta(days=28)
MONTHS = 3
KEPT_CLEAN = (
    "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000, "
    "autovacuum_analyze_scale_factor = 0.02"
)


def ask(editor, statement):
    with editor.connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def first_of_next(moment):
    """Return the beginning of the month after that of a moment."""
    return (moment.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def border(editor):
    """Return where the first part ends: after all rows that there are, and far enough from now."""
    [(latest,)] = ask(editor, "SELECT max(at) FROM activity_attempt")
    soon = datetime.now(UTC) + FAR_ENOUGH
    return first_of_next(max(soon, latest.astimezone(UTC) + timedelta(days=1)) if latest else soon)


def prepare(apps, editor):
    """Let the database prove that the table fits its part, while others go on writing."""
    until = border(editor)
    editor.execute(f"ALTER TABLE activity_attempt SET ({KEPT_CLEAN})")
    editor.execute("ALTER TABLE activity_attempt DROP CONSTRAINT IF EXISTS attempt_before")
    editor.execute(
        f"ALTER TABLE activity_attempt ADD CONSTRAINT attempt_before CHECK (at < '{until.isoformat()}') NOT VALID"
    )
    editor.execute("ALTER TABLE activity_attempt VALIDATE CONSTRAINT attempt_before")


def exchange(apps, editor):
    """Put a divided table in the place of the ledger, with the ledger as its first part."""
    until = ask(
        editor,
        r"""SELECT substring(pg_get_constraintdef(oid) FROM '''(\d{4}-\d\d-\d\d)') FROM pg_constraint
            WHERE conname = 'attempt_before'
              AND conrelid IN (to_regclass('activity_attempt'), to_regclass('activity_attempt_before'))
            ORDER BY conrelid = to_regclass('activity_attempt') DESC""",
    )[0][0]
    indexes = ask(
        editor,
        """SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
           WHERE i.indrelid = 'activity_attempt'::regclass AND NOT i.indisprimary""",
    )
    with transaction.atomic(editor.connection.alias):
        for statement in [
            "SET LOCAL lock_timeout = '3s'",
            "LOCK TABLE activity_attempt IN ACCESS EXCLUSIVE MODE",
            *(f'ALTER INDEX "{name}" RENAME TO "{name[:55]}_before"' for name, _ in indexes),
            "CREATE TABLE activity_attempt_divided (LIKE activity_attempt INCLUDING DEFAULTS INCLUDING CONSTRAINTS) "
            "PARTITION BY RANGE (at)",
            *(
                definition.replace(" ONLY ", " ", 1).replace(".activity_attempt ", ".activity_attempt_divided ", 1)
                for _, definition in indexes
            ),
            "CREATE SEQUENCE activity_attempt_ids",
            "SELECT setval('activity_attempt_ids', last_value, is_called) FROM activity_attempt_id_seq",
            "ALTER TABLE activity_attempt ALTER COLUMN id DROP IDENTITY",
            "ALTER TABLE activity_attempt RENAME TO activity_attempt_before",
            "ALTER TABLE activity_attempt_divided RENAME TO activity_attempt",
            "ALTER TABLE activity_attempt DROP CONSTRAINT attempt_before",
            "ALTER TABLE activity_attempt ALTER COLUMN id SET DEFAULT nextval('activity_attempt_ids')",
            "ALTER TABLE activity_attempt_before ALTER COLUMN id SET DEFAULT nextval('activity_attempt_ids')",
            "ALTER SEQUENCE activity_attempt_ids OWNED BY activity_attempt.id",
            "ALTER TABLE activity_attempt ATTACH PARTITION activity_attempt_before "
            f"FOR VALUES FROM (MINVALUE) TO ('{until} 00:00+00')",
            "CREATE TABLE activity_attempt_rest PARTITION OF activity_attempt (PRIMARY KEY (id)) DEFAULT",
            *months(datetime.fromisoformat(until)),
        ]:
            editor.execute(statement)


def months(since):
    for _ in range(MONTHS):
        until = first_of_next(since)
        yield (
            f"CREATE TABLE activity_attempt_{since:%Y_%m} PARTITION OF activity_attempt (PRIMARY KEY (id)) "
            f"FOR VALUES FROM ('{since:%Y-%m-%d} 00:00+00') TO ('{until:%Y-%m-%d} 00:00+00') WITH ({KEPT_CLEAN})"
        )
        since = until


def join(apps, editor):
    """Copy all parts into one table. This takes as long as copying takes, and nothing is sent meanwhile."""
    indexes = ask(
        editor,
        """SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'activity_attempt'::regclass""",
    )
    with transaction.atomic(editor.connection.alias):
        for statement in [
            "LOCK TABLE activity_attempt IN ACCESS EXCLUSIVE MODE",
            "CREATE TABLE activity_attempt_whole (LIKE activity_attempt INCLUDING DEFAULTS INCLUDING CONSTRAINTS)",
            "INSERT INTO activity_attempt_whole SELECT * FROM activity_attempt",
            "ALTER TABLE activity_attempt_whole ALTER COLUMN id DROP DEFAULT",
            "ALTER TABLE activity_attempt_whole ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY "
            "(SEQUENCE NAME activity_attempt_id_seq)",
            "SELECT setval('activity_attempt_id_seq', last_value, is_called) FROM activity_attempt_ids",
            "DROP TABLE activity_attempt",
            "ALTER TABLE activity_attempt_whole RENAME TO activity_attempt",
            "ALTER TABLE activity_attempt ADD CONSTRAINT activity_attempt_pkey PRIMARY KEY (id)",
            *(definition.replace(" ONLY ", " ", 1) for (definition,) in indexes),
        ]:
            editor.execute(statement)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("activity", "0013_ledger_indexes")]

    operations = [
        migrations.RunPython(prepare, migrations.RunPython.noop),
        migrations.RunPython(exchange, join),
    ]
