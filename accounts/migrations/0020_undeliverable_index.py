"""Recipients whose address is undeliverable are a list of their own. Built without a lock."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0019_undeliverable")]

    operations = [
        AddIndexConcurrently(
            model_name="recipient",
            index=models.Index(
                condition=models.Q(undeliverable_at__isnull=False),
                fields=["owner", "name", "id"],
                name="recipient_undeliverable",
            ),
        ),
    ]
