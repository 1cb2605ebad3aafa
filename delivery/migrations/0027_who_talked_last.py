"""Fill the contacts of accounts from what was sent and said before: at most the last million messages of each.

Each step is a transaction of its own and changes nothing that is newer, so that it may be stopped and repeated.
"""

from django.db import migrations

STEP = 20_000  # rows, by their ids
STEPS = 50

SENT = """
INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT recipient_id, account_id, max(settled_at) FROM delivery_runtarget
WHERE id > %s AND id <= %s AND status = 'sent' AND settled_at IS NOT NULL
GROUP BY recipient_id, account_id ORDER BY recipient_id, account_id
ON CONFLICT (recipient_id, account_id) DO UPDATE SET talked_at = EXCLUDED.talked_at
WHERE COALESCE(accounts_contact.talked_at < EXCLUDED.talked_at, true)
"""
SAID = """
INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT recipient_id, account_id, max(at) FROM activity_inbound
WHERE id > %s AND id <= %s AND kind = 'message' AND recipient_id IS NOT NULL
GROUP BY recipient_id, account_id ORDER BY recipient_id, account_id
ON CONFLICT (recipient_id, account_id) DO UPDATE SET talked_at = EXCLUDED.talked_at
WHERE COALESCE(accounts_contact.talked_at < EXCLUDED.talked_at, true)
"""
GROUPS = """
INSERT INTO accounts_contact (recipient_id, account_id, member_at)
SELECT id, account_id, now() FROM accounts_recipient
WHERE id > %s AND id <= %s AND account_id IS NOT NULL AND kind IN ('group', 'room') AND archived_at IS NULL
ORDER BY id
ON CONFLICT (recipient_id, account_id) DO NOTHING
"""


def fill(apps, schema_editor):
    for table, statement in (
        ("accounts_recipient", GROUPS),
        ("delivery_runtarget", SENT),
        ("activity_inbound", SAID),
    ):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT max(id) FROM {table}")  # noqa: S608 - one of the three above
            (last,) = cursor.fetchone()
            for _ in range(STEPS):
                if not last or last <= 0:
                    break
                cursor.execute(statement, [last - STEP, last])
                last -= STEP


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("accounts", "0026_contacts"),
        ("activity", "0018_new_people"),
        ("delivery", "0026_new_people"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
