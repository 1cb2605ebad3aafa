"""Events from services: messages, receipts and session changes, each stored once."""

from django.db import models
from django.db.models import Q


class Inbound(models.Model):
    """One event of a service, identified by the id that the service gave it."""

    class Kind(models.TextChoices):
        MESSAGE = "message", "Message"
        RECEIPT = "receipt", "Receipt"
        SESSION = "session", "Session change"
        LOCK = "lock", "First contacts locked"
        CONSENT = "consent", "Change of consent at the service"

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
        help_text="The run of the message that a reply answers.",
    )
    provider_id = models.CharField(
        max_length=255, blank=True, help_text="The service's id of the message that it is about."
    )
    sender = models.CharField(max_length=255, blank=True, help_text="As the service writes it.")
    chat = models.CharField(max_length=255, blank=True)
    direct = models.BooleanField(
        default=False, db_default=False, help_text="Sent in a room with this sender alone."
    )
    waits_for = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The hidden address of the sender: the event is handled once the person behind it is known.",
    )
    state = models.CharField(
        max_length=20,
        blank=True,
        help_text="The state in a receipt, a session change or a change of consent.",
    )
    text = models.TextField(
        blank=True, help_text="The text of a message, or the reason that the service gives."
    )
    subject = models.CharField(
        max_length=255,
        blank=True,
        db_default="",
        help_text="The subject of an e-mail, if it is not the subject of an answer.",
    )
    answers = models.CharField(
        max_length=255,
        blank=True,
        db_default="",
        help_text="The id of our message that it answers, if it names one.",
    )
    at = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "event_id"], name="inbound_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["message", "receipt", "session", "lock", "consent"]),
                name="inbound_kind_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "id"], condition=Q(handled_at__isnull=True), name="inbound_unhandled"
            ),
            models.Index(
                fields=["account", "waits_for"], condition=~Q(waits_for=""), name="inbound_of_hidden_people"
            ),
            models.Index(fields=["run", "-at"], condition=Q(run__isnull=False), name="inbound_replies"),
            models.Index(fields=["account", "id"], condition=Q(kind="message"), name="inbound_messages"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} at {self.at:%Y-%m-%d %H:%M}"
