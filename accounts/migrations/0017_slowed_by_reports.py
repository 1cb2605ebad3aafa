"""A report that the account sends too fast slows it down, and ends the shift that knows nothing of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0016_safer_profiles")]

    operations = [
        migrations.AddField(
            model_name="account",
            name="slowed_by_report_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="Ends the shift that knew nothing of it.", null=True
            ),
        )
    ]
