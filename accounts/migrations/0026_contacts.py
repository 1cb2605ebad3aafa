"""The last talk of each account with each recipient, and the groups that it is a member of."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0025_roles")]

    operations = [
        migrations.CreateModel(
            name="Contact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "talked_at",
                    models.DateTimeField(blank=True, help_text="When one of them last wrote to the other.", null=True),
                ),
                (
                    "member_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the account was last seen to be a member of the group.",
                        null=True,
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contacts",
                        to="accounts.account",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contacts",
                        to="accounts.recipient",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("recipient", "account"), name="contact_once"),
                ],
            },
        ),
        # Most writes change `talked_at` alone: with room in its page, such a row stays where its indexes find it.
        migrations.RunSQL(
            "ALTER TABLE accounts_contact SET (fillfactor = 85)", "ALTER TABLE accounts_contact RESET (fillfactor)"
        ),
    ]
