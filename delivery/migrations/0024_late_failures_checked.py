"""Check the rule of late failures on the rows that were there before, and find those that came back by their run.

Both without a lock that keeps others out.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("delivery", "0023_late_failures")]

    operations = [
        ValidateConstraint(model_name="runtarget", name="target_returned_of_a_kind"),
        AddIndexConcurrently(
            model_name="runtarget",
            index=models.Index(
                condition=models.Q(returned_at__isnull=False), fields=["run", "id"], name="target_returned"
            ),
        ),
    ]
