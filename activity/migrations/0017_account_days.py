"""Small counters of each account and day, and up to when the ledger is counted into them."""

import django.db.models.deletion
from django.db import migrations, models

STAND = """
CREATE TABLE activity_ledgercount (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1), counted_until timestamptz NOT NULL
)
"""


def number(text: str = "") -> models.PositiveIntegerField:
    return models.PositiveIntegerField(db_default=0, default=0, help_text=text)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0020_undeliverable_index"), ("activity", "0016_canceled_notifications_checked")]

    operations = [
        migrations.CreateModel(
            name="AccountDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("sent", number("Messages, not their parts.")),
                ("failed", number("Refused for good.")),
                ("returned", number("Reported as failed after they were sent, on whichever day.")),
                ("complained", number()),
                ("replies", number()),
                ("opt_outs", number()),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="accounts.account",
                    ),
                ),
            ],
            options={
                "ordering": ["-day"],
                "constraints": [models.UniqueConstraint(fields=("account", "day"), name="account_day_once")],
            },
        ),
        migrations.RunSQL(STAND, "DROP TABLE activity_ledgercount"),
    ]
