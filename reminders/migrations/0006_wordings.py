"""A text has other wordings, and choices in braces. A text of the release before has no list: its braces are plain."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


def other_wordings() -> ArrayField:
    return ArrayField(
        models.TextField(),
        null=True,
        blank=True,
        help_text="Wordings B to E of the text. Without a list, braces in the text are no choices.",
    )


class Migration(migrations.Migration):
    dependencies = [("reminders", "0005_beside_paused_runs")]

    operations = [
        migrations.AddField(model_name="followupstep", name="other_wordings", field=other_wordings()),
        migrations.AddField(model_name="part", name="other_wordings", field=other_wordings()),
    ]
