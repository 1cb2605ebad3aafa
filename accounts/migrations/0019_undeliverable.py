"""Addresses at which nothing arrives: since when, why, and who said so (SPEC L4)."""

from django.db import migrations, models

MOVES = [
    ("out", "Opted out"),
    ("in", "Opted in"),
    ("blocked", "Blocked"),
    ("unblocked", "Unblocked"),
    ("dead", "Undeliverable"),
    ("alive", "Deliverable again"),
    ("converted", "Converted"),
    ("reopened", "No longer converted"),
]
# The release before knows no such change.
BACK = "DELETE FROM accounts_consentchange WHERE move IN ('dead', 'alive')"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0018_calendar_feed")]

    operations = [
        migrations.AddField(
            model_name="recipient",
            name="undeliverable_at",
            field=models.DateTimeField(
                blank=True, help_text="Since when the address is known to receive nothing.", null=True
            ),
        ),
        migrations.AddField(
            model_name="recipient",
            name="undeliverable_for",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The reason, in the service's words.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="recipient",
            name="undeliverable_source",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The report or answer that said so.",
                max_length=100,
            ),
        ),
        migrations.RemoveConstraint(model_name="consentchange", name="consent_move_known"),
        migrations.RunSQL(migrations.RunSQL.noop, BACK),
        migrations.AlterField(
            model_name="consentchange",
            name="move",
            field=models.CharField(choices=MOVES, max_length=10),
        ),
        migrations.AddConstraint(
            model_name="consentchange",
            constraint=models.CheckConstraint(
                condition=models.Q(move__in=[move for move, _ in MOVES]), name="consent_move_known"
            ),
        ),
    ]
