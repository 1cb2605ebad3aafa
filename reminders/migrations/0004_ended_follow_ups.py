from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # rows are written while the index is built

    dependencies = [
        ("reminders", "0003_plain_words"),
    ]

    # The new index has a name of its own, so that there is one at every moment for the pages of both releases.
    operations = [
        AddIndexConcurrently(
            model_name="followup",
            index=models.Index(
                condition=models.Q(("status__in", ["sent", "removed"])),
                fields=["status", "-ended_at"],
                name="follow_up_over",
            ),
        ),
        RemoveIndexConcurrently(
            model_name="followup",
            name="follow_up_ended",
        ),
    ]
