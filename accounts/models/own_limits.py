"""The limits that a service itself sets for an account, as it was told when asked."""

from django.db import models

from accounts.models.account import Account


class OwnLimits(models.Model):
    """The last answer of an account's service about its own limits.

    `new_chats` is the quota of a cycle that ends at `new_chats_until`; `new_chats_used` of it were used at `read_at`.
    """

    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="own_limits")
    new_chats = models.PositiveIntegerField(null=True, blank=True)
    new_chats_used = models.PositiveIntegerField(default=0)
    new_chats_until = models.DateTimeField(null=True, blank=True)
    people_per_24_hours = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of all accounts of the portfolio together."
    )
    said = models.TextField(blank=True, default="", help_text="The answers themselves, as JSON.")
    trouble = models.CharField(max_length=200, blank=True, help_text="Why the service could not be asked.")
    read_at = models.DateTimeField(null=True, blank=True, help_text="When it answered last.")
    tried_at = models.DateTimeField(help_text="When it was asked last.")

    class Meta:
        ordering = ["account_id"]
        verbose_name = "own limits of a service"
        verbose_name_plural = "own limits of services"

    def __str__(self) -> str:
        return f"Own limits of the service of {self.account}"
