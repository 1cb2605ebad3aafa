"""A run is a success when everyone who could get it did: recipients who were left out do not make it partial."""

from django.db import migrations, models
from django.db.models import F, Q

# The rule before allowed no success with recipients left out.
BACK = "UPDATE delivery_run SET status = 'partial' WHERE status = 'success' AND left_out > 0"


class Migration(migrations.Migration):
    dependencies = [("delivery", "0017_removed_details")]

    operations = [
        migrations.RunSQL(migrations.RunSQL.noop, BACK),
        migrations.RemoveConstraint(model_name="run", name="run_success_is_all_sent"),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=~Q(status="success") | Q(sent=F("total") - F("left_out")),
                name="run_success_is_all_sent",
            ),
        ),
    ]
