"""Lets the database itself refuse to change or remove what is in the audit log.

Old entries may be removed by the retention, which says so in its transaction (`audit/retention.py`), and even then not
those of the last 30 days. Personal values may be removed, by the retention or when a recipient is erased, and never
changed.
"""

from django.db import migrations

REFUSE = """
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    way text := current_setting('paceline.audit_way', true);
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'audit_personalvalues' AND way IN ('retention', 'erasure') THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'audit_entry' AND way = 'retention' THEN
        IF OLD.at < now() - interval '30 days' THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'The audit log is append-only: its rows are not changed and not removed.'
        USING ERRCODE = 'insufficient_privilege';
END $$
"""
TABLES = ("audit_entry", "audit_personalvalues")
TRIGGERS = [
    statement
    for table in TABLES
    for statement in (
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION audit_append_only()",
        f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()",
    )
]
UNDO = [
    *(f"DROP TRIGGER {name} ON {table}" for table in TABLES for name in ("append_only", "never_emptied")),
    "DROP FUNCTION audit_append_only()",
]


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunSQL([REFUSE, *TRIGGERS], UNDO)]
