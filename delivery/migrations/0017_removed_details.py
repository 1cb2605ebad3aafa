"""A run says when its details were removed. The previous release writes runs without the new columns."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("delivery", "0016_canceling_runs")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="details_removed_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When pruning began to remove its targets; the counts stay.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="details_left",
            field=models.BooleanField(
                db_default=True,
                default=True,
                editable=False,
                help_text="Whether pruning has something left to remove.",
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("details_left", True), ("finished_at__isnull", False)),
                fields=["finished_at"],
                name="run_to_prune",
            ),
        ),
    ]
