"""The answers of the DNS about the domain that an e-mail account sends from."""

from django.db import models

from accounts.models.account import Account


class SenderDomain(models.Model):
    """The last look at SPF, DKIM and DMARC of one account's domain."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="sender_domain")
    domain = models.CharField(max_length=253)
    findings = models.JSONField(default=list, help_text="One per kind of record, with what to change.")
    trouble = models.CharField(max_length=200, blank=True, help_text="Why the DNS could not be asked.")
    checked_at = models.DateTimeField()

    class Meta:
        ordering = ["account_id"]

    def __str__(self) -> str:
        return f"{self.domain} of {self.account}"
