"""The ledger keeps which of several wordings a message had."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("activity", "0011_plain_words")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="variant",
            field=models.SmallIntegerField(
                null=True, blank=True, help_text="Which of several wordings it had; 0 is A."
            ),
        )
    ]
