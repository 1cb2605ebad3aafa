"""An e-mail may continue the conversation of an earlier one."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0021_undo")]

    operations = [
        migrations.AddField(
            model_name="runtarget",
            name="continues",
            field=ArrayField(
                models.CharField(max_length=255),
                null=True,
                blank=True,
                help_text="The ids of the e-mails whose conversation this one continues.",
            ),
        )
    ]
