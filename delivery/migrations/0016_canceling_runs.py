"""The tick finds canceled runs that have targets left. Built without a lock, beside the previous release."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("delivery", "0015_plain_words")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("canceled_at__isnull", False), ("status", "paused")),
                fields=["canceled_at"],
                name="run_canceling",
            ),
        ),
    ]
