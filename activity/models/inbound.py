"""What came in: messages, receipts and session changes, each once."""

from django.db import models
from django.db.models import Q


class Inbound(models.Model):
    """One event of a service, told apart by the id that the service gave it."""

    class Kind(models.TextChoices):
        MESSAGE = "message", "Message"
        RECEIPT = "receipt", "Receipt"
        SESSION = "session", "Session change"

    account = models.ForeignKey("accounts.Account", on_delete=models.CASCADE, related_name="inbound")
    event_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=10, choices=Kind)
    recipient = models.ForeignKey(
        "accounts.Recipient", on_delete=models.SET_NULL, null=True, blank=True, related_name="inbound"
    )
    target = models.ForeignKey(
        "delivery.RunTarget", on_delete=models.SET_NULL, null=True, blank=True, related_name="inbound"
    )
    text = models.TextField(blank=True)
    at = models.DateTimeField()
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "event_id"], name="inbound_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["message", "receipt", "session"]), name="inbound_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} at {self.at:%Y-%m-%d %H:%M}"
