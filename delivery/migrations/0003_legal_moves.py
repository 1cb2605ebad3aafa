"""The database itself refuses a state that the old one cannot become.

The moves are those of delivery/states.py when this was written; a test tries every pair, so a change there needs a
migration like this one.
"""

from collections.abc import Mapping

from django.db import migrations

RUN = {
    "queued": ["running", "paused", "success", "partial", "failed", "canceled"],
    "running": ["queued", "paused", "success", "partial", "failed", "canceled"],
    "paused": ["queued", "running", "success", "partial", "failed", "canceled"],
    "success": [],
    "partial": ["queued", "running", "success", "failed"],
    "failed": ["queued", "running", "success", "partial"],
    "canceled": [],
    "skipped": [],
}
TARGET = {
    "pending": ["sending", "skipped"],
    "sending": ["pending", "sent", "failed", "skipped", "unconfirmed"],
    "sent": [],
    "failed": ["pending"],
    "skipped": [],
    "unconfirmed": ["pending", "sent"],
}
ACCOUNT = {
    "unpaired": ["pairing", "active"],
    "pairing": ["unpaired", "active", "offline"],
    "active": ["unpaired", "pairing", "paused", "offline", "flagged"],
    "paused": ["unpaired", "pairing", "active", "offline", "flagged"],
    "offline": ["unpaired", "pairing", "active", "paused", "flagged"],
    "flagged": ["unpaired", "pairing", "active"],
}


def guard(table: str, name: str, moves: Mapping[str, list[str]]) -> migrations.RunSQL:
    """A trigger that looks only at rows whose status changes; an unknown word is the check constraint's to refuse."""
    illegal = ", ".join(
        f"'{old}>{new}'" for old in moves for new in moves if new != old and new not in moves[old]
    )
    return migrations.RunSQL(
        sql=f"""
            CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF OLD.status || '>' || NEW.status IN ({illegal}) THEN
                    RAISE EXCEPTION '{table} % is % and cannot become %', OLD.id, OLD.status, NEW.status
                    USING ERRCODE = 'check_violation', CONSTRAINT = '{name}';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER {name} BEFORE UPDATE OF status ON {table} FOR EACH ROW
            WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION {name}();
        """,
        reverse_sql=f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}();",
    )


class Migration(migrations.Migration):
    dependencies = [("delivery", "0002_run_targets"), ("accounts", "0001_initial")]

    operations = [
        guard("delivery_run", "run_legal_move", RUN),
        guard("delivery_runtarget", "target_legal_move", TARGET),
        guard("accounts_account", "account_legal_move", ACCOUNT),
    ]
