"""An account may show typing before its messages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_plain_words")]

    operations = [
        migrations.AddField(
            model_name="account",
            name="shows_typing",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Mark the chat as seen and show “typing” for a few seconds before each message.",
                verbose_name="show “typing”",
            ),
        )
    ]
