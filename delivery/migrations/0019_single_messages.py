"""Runs of a single message, which belong to no reminder that a person wrote."""

from django.db import migrations, models
from django.db.models import Q

KINDS = [
    ("reminder", "Reminder"),
    ("second", "Second message"),
    ("follow_up", "Follow-up"),
    ("message", "Single message"),
]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0018_success_without_left_out")]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="kind",
            field=models.CharField(choices=KINDS, default="reminder", max_length=10),
        ),
        migrations.RemoveConstraint(model_name="run", name="run_kind_known"),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=Q(kind__in=["reminder", "second", "follow_up", "message"]), name="run_kind_known"
            ),
        ),
    ]
