"""A reminder says what happens to a due moment while its last run is paused. The release before writes no choice."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reminders", "0004_ended_follow_ups")]

    operations = [
        migrations.AddField(
            model_name="reminder",
            name="on_paused",
            field=models.CharField(
                choices=[("run", "Send it anyway"), ("queue", "Start after it"), ("skip", "Skip this time")],
                db_default="run",
                default="run",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="reminder",
            constraint=models.CheckConstraint(
                condition=models.Q(("on_paused__in", ["run", "queue", "skip"])),
                name="reminder_on_paused_known",
            ),
        ),
    ]
