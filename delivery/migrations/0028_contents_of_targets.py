"""Targets with a content of their own, and runs of queues."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

KINDS = [
    ("reminder", "Reminder"),
    ("second", "Second message"),
    ("follow_up", "Follow-up"),
    ("message", "Single message"),
    ("queue", "Queue"),
]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0027_who_talked_last")]

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
                condition=Q(kind__in=["reminder", "second", "follow_up", "message", "queue"]),
                name="run_kind_known",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="on_time_first",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Its messages leave at their planned times, and overdue ones slowly, as if the profile said so.",
            ),
        ),
        migrations.AddField(
            model_name="runtarget",
            name="item_id",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="The item of a queue that it sends; else 0.",
            ),
        ),
        migrations.CreateModel(
            name="TargetContent",
            fields=[
                (
                    "target",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="content",
                        serialize=False,
                        to="delivery.runtarget",
                    ),
                ),
                ("subject", models.TextField(blank=True, db_default="", default="")),
                (
                    "parts",
                    models.JSONField(
                        blank=True, help_text="Its own parts, in the form of a run's parts.", null=True
                    ),
                ),
                (
                    "values",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Variables of its own; they go before those of its recipient.",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(parts__isnull=True) | ~Q(parts=[]), name="target_content_is_not_empty"
                    )
                ],
            },
        ),
    ]
