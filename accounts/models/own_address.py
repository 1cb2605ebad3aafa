"""Addresses that a person confirmed as their own, and the messages sent there outside of any run."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models.account import Account


class OwnAddress(models.Model):
    """An address to which one person may send tests from one account, after a code sent there confirmed it."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="own_addresses")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=255, help_text="In its canonical form.")
    confirmed_at = models.DateTimeField(null=True, blank=True)
    code_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    code_at = models.DateTimeField(null=True, blank=True, help_text="When the last code was sent.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="Number of codes typed since then.")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "own addresses"
        constraints = [
            models.UniqueConstraint(fields=["account", "person", "address"], name="own_address_once"),
        ]

    def __str__(self) -> str:
        return self.address


class TestMessage(models.Model):
    """One test or code that a person asked for. The caps count these rows."""

    __test__ = False  # pytest: this is not a test class, although its name begins with Test

    class Kind(models.TextChoices):
        TEST = "test", "Test"
        CODE = "code", "Code"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="test_messages")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=255)
    kind = models.CharField(max_length=4, choices=Kind)
    asked_at = models.DateTimeField()
    begun_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Set right before the first part is sent, so that it is sent only once.",
    )

    messages = models.PositiveSmallIntegerField(default=1, db_default=1)
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="Set when all sent parts are in the ledger."
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=["test", "code"]), name="test_message_kind_known"),
        ]
        indexes = [
            models.Index(fields=["person", "kind", "asked_at"], name="test_message_by_person"),
            models.Index(fields=["kind", "asked_at"], name="test_message_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} to {self.address}"
