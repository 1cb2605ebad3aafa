"""Notes of an account about a recipient: when they last talked, and whether it is a member of the group."""

from django.db import models

from accounts.models.account import Account
from accounts.models.recipient import Recipient


class Contact(models.Model):
    """One account and one recipient. Written by the engine, by replies, and when groups are read."""

    recipient = models.ForeignKey(
        Recipient, on_delete=models.CASCADE, related_name="contacts", db_index=False, db_constraint=False
    )
    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, related_name="contacts", db_constraint=False
    )
    talked_at = models.DateTimeField(
        null=True, blank=True, help_text="When one of them last wrote to the other."
    )
    member_at = models.DateTimeField(
        null=True, blank=True, help_text="When the account was last seen to be a member of the group."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["recipient", "account"], name="contact_once")]

    def __str__(self) -> str:
        return f"{self.account} and {self.recipient}"
