"""Shares of accounts that cannot send, without which a run goes on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0029_several_items_for_one")]

    operations = [
        migrations.AddField(
            model_name="runaccount",
            name="waits",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="The account cannot send: what it has left waits for it, and the run goes on without it.",
            ),
        ),
    ]
