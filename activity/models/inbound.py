"""What came in: messages, receipts and session changes, each once."""

from django.db import models
from django.db.models import Q


class Inbound(models.Model):
    """One event of a service, told apart by the id that the service gave it."""

    class Kind(models.TextChoices):
        MESSAGE = "message", "Message"
        RECEIPT = "receipt", "Receipt"
        SESSION = "session", "Session change"
        LOCK = "lock", "First contacts locked"

    account = models.ForeignKey("accounts.Account", on_delete=models.CASCADE, related_name="inbound")
    event_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=10, choices=Kind)
    recipient = models.ForeignKey(
        "accounts.Recipient", on_delete=models.SET_NULL, null=True, blank=True, related_name="inbound"
    )
    target = models.ForeignKey(
        "delivery.RunTarget", on_delete=models.SET_NULL, null=True, blank=True, related_name="inbound"
    )
    run = models.ForeignKey(
        "delivery.Run",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="inbound",
        db_index=False,
        help_text="Of the message that a reply answers.",
    )
    provider_id = models.CharField(max_length=255, blank=True, help_text="Of the message that it is about.")
    sender = models.CharField(max_length=255, blank=True, help_text="As the service writes it.")
    chat = models.CharField(max_length=255, blank=True)
    state = models.CharField(max_length=20, blank=True, help_text="Of a receipt or a session.")
    text = models.TextField(blank=True, help_text="What was written, or the service's reason.")
    at = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "event_id"], name="inbound_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["message", "receipt", "session", "lock"]), name="inbound_kind_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "id"], condition=Q(handled_at__isnull=True), name="inbound_unhandled"
            ),
            models.Index(fields=["run", "-at"], condition=Q(run__isnull=False), name="inbound_replies"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} at {self.at:%Y-%m-%d %H:%M}"
