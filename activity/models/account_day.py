"""Small counters of each account and day, so that nobody has to read the ledger for a week's shares."""

from django.db import models


class AccountDay(models.Model):
    """The results of one day, in the account's zone. `delivery/health/counts.py` counts."""

    account = models.ForeignKey(
        "accounts.Account", on_delete=models.CASCADE, related_name="days", db_index=False
    )
    day = models.DateField()
    sent = models.PositiveIntegerField(default=0, db_default=0, help_text="Messages, not their parts.")
    failed = models.PositiveIntegerField(default=0, db_default=0, help_text="Refused for good.")
    returned = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Reported as failed after they were sent, on whichever day."
    )
    complained = models.PositiveIntegerField(default=0, db_default=0)
    replies = models.PositiveIntegerField(default=0, db_default=0)
    opt_outs = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ["-day"]
        constraints = [models.UniqueConstraint(fields=["account", "day"], name="account_day_once")]

    def __str__(self) -> str:
        return f"{self.account} on {self.day:%Y-%m-%d}"
