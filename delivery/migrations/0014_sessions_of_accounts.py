from django.db import migrations

from accounts.encryption import UnreadableSecretError
from delivery.sessions.one_account import session_key


def note_sessions(apps, schema_editor):
    """Of accounts that share a session already, the oldest gets it; the others keep working, and are told when edited."""
    Account = apps.get_model("accounts", "Account")
    taken = set()
    for account in Account.objects.filter(archived_at=None).order_by("pk").iterator():
        try:
            key = session_key(account.transport, account.credentials)
        except UnreadableSecretError:
            continue
        if key and key not in taken:
            taken.add(key)
            Account.objects.filter(pk=account.pk).update(session_key=key)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0010_from_services"),
        ("delivery", "0013_doubts_in_the_breaker"),
    ]

    operations = [migrations.RunPython(note_sessions, migrations.RunPython.noop)]
