"""Webhooks may be told of items of queues. The rule is looser than before, by one word that the last release does not write."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0032_erased_people_checked"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="webhook",
            name="webhook_events_known",
        ),
        migrations.AlterField(
            model_name="webhook",
            name="events",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("run.started", "Run started"),
                        ("run.paused", "Run paused"),
                        ("run.resumed", "Run resumed"),
                        ("run.finished", "Run finished"),
                        ("run.targets", "Results of recipients, in batches"),
                        ("items.changed", "Items of queues, in batches"),
                        ("reply.received", "Reply received"),
                        ("recipient.opted_out", "Recipient opted out"),
                        ("recipient.opted_in", "Recipient opted in"),
                        ("account.changed", "Account stopped or started"),
                    ],
                    max_length=30,
                ),
                size=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "events__contained_by",
                        [
                            "run.started",
                            "run.paused",
                            "run.resumed",
                            "run.finished",
                            "run.targets",
                            "items.changed",
                            "reply.received",
                            "recipient.opted_out",
                            "recipient.opted_in",
                            "account.changed",
                        ],
                    ),
                    models.Q(("events", []), _negated=True),
                ),
                name="webhook_events_known",
            ),
        ),
    ]
