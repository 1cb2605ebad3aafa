from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("activity", "0018_new_people")]

    operations = [
        migrations.RemoveConstraint(model_name="notification", name="notification_kind_known"),
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("paused", "Run paused"),
                    ("partial", "Run finished in part"),
                    ("success", "Run finished"),
                    ("failed", "Run failed"),
                    ("canceled", "Run canceled"),
                    ("missed", "Moment missed"),
                    ("account", "Account needs you"),
                    ("waiting", "Run waits for you"),
                    ("approval", "Approval needed"),
                    ("webhook", "Webhook switched off"),
                ],
                max_length=10,
            ),
        ),
        AddConstraintNotValid(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "paused",
                            "partial",
                            "success",
                            "failed",
                            "canceled",
                            "missed",
                            "account",
                            "waiting",
                            "approval",
                            "webhook",
                        ],
                    )
                ),
                name="notification_kind_known",
            ),
        ),
    ]
