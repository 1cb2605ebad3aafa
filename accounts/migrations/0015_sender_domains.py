"""The answers of the DNS about the domain that an e-mail account sends from."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0014_caps_of_long_spans")]

    operations = [
        migrations.CreateModel(
            name="SenderDomain",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("domain", models.CharField(max_length=253)),
                (
                    "findings",
                    models.JSONField(default=list, help_text="One per kind of record, with what to change."),
                ),
                (
                    "trouble",
                    models.CharField(blank=True, help_text="Why the DNS could not be asked.", max_length=200),
                ),
                ("checked_at", models.DateTimeField()),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sender_domain",
                        to="accounts.account",
                    ),
                ),
            ],
            options={"ordering": ["account_id"]},
        )
    ]
