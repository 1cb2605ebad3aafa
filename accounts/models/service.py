"""Facts about an account from its service: the person behind a hidden address, and refused reports."""

from django.db import models

from accounts.models.account import Account


class AddressAlias(models.Model):
    """A second address of a person, such as WhatsApp's ...@lid. Kept by `delivery.inbound.aliases`."""

    class Source(models.TextChoices):
        MESSAGE = "message", "A message"
        RECEIPT = "receipt", "A receipt"
        GROUP = "group", "A group's members"
        ASKED = "asked", "Asked for"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="aliases")
    alias = models.CharField(max_length=255)
    address = models.CharField(max_length=255, help_text="In its canonical form.")
    source = models.CharField(max_length=10, choices=Source)
    learnt_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "address aliases"
        constraints = [models.UniqueConstraint(fields=["account", "alias"], name="address_alias_once")]
        indexes = [models.Index(fields=["account", "address"], name="address_alias_by_address")]

    def __str__(self) -> str:
        return f"{self.alias} is {self.address}"


class RefusedReports(models.Model):
    """Refused reports to an account's webhook since the account was last connected. One row per account."""

    account = models.OneToOneField(
        Account, on_delete=models.CASCADE, primary_key=True, related_name="refused_reports"
    )
    count = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    reason = models.CharField(max_length=255, help_text="The reason for the last refusal.")

    class Meta:
        verbose_name_plural = "refused reports"

    def __str__(self) -> str:
        return f"{self.count} refused reports"
