"""The ledger: one row per attempt, the source of truth for every limit."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Attempt(models.Model):
    """One message that left, or may have left. Rows are added, never changed.

    The table is divided into months (`activity/ledger_months.py`). An id is unique in each of them and comes from one
    sequence; the database has no key over all of them, so no foreign key can lead here.
    """

    class Outcome(models.TextChoices):
        """The names of the values in `delivery/outcomes.py`."""

        SENT = "sent", "Sent"
        RATE_LIMITED = "rate_limited", "Rate limited"
        NOT_CONNECTED = "not_connected", "Not connected"
        UNREACHABLE = "unreachable", "Unreachable"
        SERVER_ERROR = "server_error", "Server error"
        TRY_AGAIN = "try_again", "Try again"
        HELD_BACK = "held_back", "Held back"
        REJECTED = "rejected", "Rejected"
        ACCOUNT_BLOCKED = "account_blocked", "Account blocked"
        UNKNOWN = "unknown", "Unknown"

    at = models.DateTimeField(help_text="When the attempt began.")
    # Without foreign key constraints, like run targets: docs/decisions/0003-indexes.md.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    account = models.ForeignKey(
        "accounts.Account",
        on_delete=models.PROTECT,
        related_name="attempts",
        db_index=False,
        db_constraint=False,
    )
    run = models.ForeignKey(
        "delivery.Run",
        on_delete=models.CASCADE,
        related_name="attempts",
        null=True,
        blank=True,
        db_index=False,
        db_constraint=False,
    )
    target = models.ForeignKey(
        "delivery.RunTarget",
        on_delete=models.CASCADE,
        related_name="ledger",
        null=True,
        blank=True,
        db_constraint=False,
        help_text="Empty for a test send.",
    )
    # A default in the database: the engine's statement does not name the column.
    address = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The address of a test; empty for messages of runs, whose target has it.",
    )
    action = models.CharField(max_length=20)
    part = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=1)
    outcome = models.CharField(max_length=20, choices=Outcome)
    provider_id = models.CharField(max_length=255, blank=True)
    error = models.CharField(max_length=500, blank=True)
    new_person = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="1: went to a new person, counted in the day. 2: also in the week. Each counts once per span.",
    )
    took_ms = models.PositiveIntegerField(default=0)
    # Signed: a check of its own would read the whole ledger when the column is added.
    variant = models.SmallIntegerField(
        null=True, blank=True, help_text="Which of several wordings it had; 0 is A."
    )

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    outcome__in=[
                        "sent",
                        "rate_limited",
                        "not_connected",
                        "unreachable",
                        "server_error",
                        "try_again",
                        "held_back",
                        "rejected",
                        "account_blocked",
                        "unknown",
                    ]
                ),
                name="attempt_outcome_known",
            ),
            models.CheckConstraint(
                condition=Q(action__in=["message", "email", "connection_request", "inmail"]),
                name="attempt_action_known",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "action", "at"], name="attempt_limits"),
            # Without the id: the few rows of one moment are sorted. The id would make each of them a third longer.
            models.Index(fields=["owner", "-at"], name="attempt_of_owner"),
            models.Index(fields=["-at"], name="attempt_by_time"),
            models.Index(fields=["run", "-id"], name="attempt_by_run"),
            models.Index(fields=["account", "-at"], condition=~Q(outcome="sent"), name="attempt_trouble"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} at {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def letter(self) -> str:
        """Return the letter of its wording; empty where there was only one."""
        return "" if self.variant is None else chr(ord("A") + self.variant)
