from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

NOW = [
    *("sent", "rate_limited", "not_connected", "unreachable", "server_error", "try_again", "held_back"),
    *("rejected", "account_blocked", "unknown"),
]
CHOICES = [
    ("sent", "Sent"),
    ("rate_limited", "Rate limited"),
    ("not_connected", "Not connected"),
    ("unreachable", "Unreachable"),
    ("server_error", "Server error"),
    ("try_again", "Try again"),
    ("held_back", "Held back"),
    ("rejected", "Rejected"),
    ("account_blocked", "Account blocked"),
    ("unknown", "Unknown"),
]
# The words that the release before this one has for the same.
BACK = """
UPDATE activity_attempt SET outcome = CASE outcome WHEN 'unreachable' THEN 'not_connected' ELSE 'try_again' END
WHERE outcome IN ('unreachable', 'server_error', 'held_back')
"""


def known(words: list[str]) -> models.CheckConstraint:
    return models.CheckConstraint(condition=models.Q(("outcome__in", words)), name="attempt_outcome_known")


class Migration(migrations.Migration):
    """Let the ledger say whose trouble an attempt met. Not validated at once: the table may have millions of rows."""

    atomic = False
    dependencies = [("activity", "0006_replies")]
    operations = [
        migrations.RemoveConstraint(model_name="attempt", name="attempt_outcome_known"),
        migrations.RunSQL(migrations.RunSQL.noop, BACK),
        migrations.AlterField(
            model_name="attempt",
            name="outcome",
            field=models.CharField(choices=CHOICES, max_length=20),
        ),
        AddConstraintNotValid(model_name="attempt", constraint=known(NOW)),
        ValidateConstraint(model_name="attempt", name="attempt_outcome_known"),
    ]
