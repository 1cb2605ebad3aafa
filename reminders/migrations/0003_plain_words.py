import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0011_sending_stops"),
        ("delivery", "0014_sessions_of_accounts"),
        ("reminders", "0002_conversations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="followup",
            name="sent_as",
            field=models.OneToOneField(
                blank=True,
                db_constraint=False,
                editable=False,
                help_text="The follow-up itself, once it is being sent.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="follow_up",
                to="delivery.runtarget",
            ),
        ),
        migrations.AlterField(
            model_name="followup",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("sending", "Sending"),
                    ("sent", "Sent"),
                    ("removed", "Removed"),
                ],
                default="queued",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="drip",
            field=models.BooleanField(
                default=False, help_text="Each recipient gets a fixed time when the run is made."
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="follow_up_cooldown_hours",
            field=models.FloatField(
                blank=True, help_text="Hours without messages after the last follow-up.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="follow_up_max_attempts",
            field=models.PositiveSmallIntegerField(
                blank=True, help_text="Most follow-ups without a reply.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="on_close",
            field=models.CharField(
                choices=[("wait", "Pause and ask me"), ("resume", "Continue automatically")],
                default="wait",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="on_overlap",
            field=models.CharField(
                choices=[("skip", "Skip this time"), ("queue", "Start after it")],
                default="skip",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="priority",
            field=models.SmallIntegerField(
                default=0, help_text="Runs with a higher number go first on the same account."
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="schedule",
            field=models.CharField(
                choices=[("by_hand", "Manual"), ("once", "Once"), ("cron", "Repeating")],
                default="once",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="second_message_hours",
            field=models.FloatField(
                blank=True,
                help_text="Hours after the first message in which a reply gets the second.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="reminder",
            name="tags",
            field=models.ManyToManyField(
                blank=True,
                help_text="Everyone who has the tag at sending time.",
                related_name="reminders",
                to="accounts.tag",
            ),
        ),
        migrations.AlterConstraint(
            model_name="part",
            name="part_has_its_content",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind", "text"), ("media__isnull", True), models.Q(("text", ""), _negated=True)
                    ),
                    models.Q(("kind", "media"), ("media__isnull", False)),
                    _connector="OR",
                ),
                name="part_has_its_content",
                violation_error_message="A text part needs a text, and a media part needs a file.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="reminder",
            name="reminder_window",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("window_start_hour__gte", 0),
                    ("window_start_hour__lt", models.F("window_end_hour")),
                    ("window_end_hour__lte", 24),
                ),
                name="reminder_window",
                violation_error_message="Delivery hours must start before they end, on one day, from 0 to 24.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="reminder",
            name="reminder_second_message_hours",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("second_message_hours__isnull", True),
                    ("second_message_hours__range", (0.1, 720)),
                    _connector="OR",
                ),
                name="reminder_second_message_hours",
                violation_error_message="The second message can be sent for 0.1 to 720 hours.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="reminder",
            name="reminder_follow_up_max_attempts",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("follow_up_max_attempts__isnull", True),
                    ("follow_up_max_attempts__range", (1, 3)),
                    _connector="OR",
                ),
                name="reminder_follow_up_max_attempts",
                violation_error_message="Choose 1 to 3 follow-ups without a reply.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="reminder",
            name="reminder_follow_up_cooldown_hours",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("follow_up_cooldown_hours__isnull", True),
                    ("follow_up_cooldown_hours__range", (0.1, 8760)),
                    _connector="OR",
                ),
                name="reminder_follow_up_cooldown_hours",
                violation_error_message="The time without messages is 0.1 to 8,760 hours.",
            ),
        ),
    ]
