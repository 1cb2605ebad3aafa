"""The reports of services after they took a message (SPEC L1): on the target, and counted in the run as a part of sent."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q

KINDS = ["temporary", "permanent", "complaint"]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0022_threads")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="returned",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="Sent messages that a service later reported as failed, bounced or unwanted; a part of sent.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="returned_before",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="runtarget",
            name="returned_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When the service first reported that the message failed after all.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="runtarget",
            name="return_kind",
            field=models.CharField(
                blank=True,
                choices=[(kind, kind.capitalize()) for kind in KINDS],
                db_default="",
                default="",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="runtarget",
            name="return_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=Q(returned__lte=F("sent")), name="run_returned_were_sent"
            ),
        ),
        AddConstraintNotValid(
            model_name="runtarget",
            constraint=models.CheckConstraint(
                condition=Q(returned_at__isnull=True, return_kind="")
                | Q(returned_at__isnull=False, return_kind__in=KINDS),
                name="target_returned_of_a_kind",
            ),
        ),
    ]
