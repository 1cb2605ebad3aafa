"""Notifications of owners, and the browsers that receive them."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Notification(models.Model):
    """One thing that an owner should know. `key` prevents telling the same thing twice."""

    class Kind(models.TextChoices):
        PAUSED = "paused", "Run paused"
        PARTIAL = "partial", "Run finished in part"
        SUCCESS = "success", "Run finished"
        FAILED = "failed", "Run failed"
        CANCELED = "canceled", "Run canceled"
        MISSED = "missed", "Moment missed"
        ACCOUNT = "account", "Account needs you"
        WAITING = "waiting", "Run waits for you"
        APPROVAL = "approval", "Approval needed"
        WEBHOOK = "webhook", "Webhook switched off"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    kind = models.CharField(max_length=10, choices=Kind)
    key = models.CharField(max_length=100)
    title = models.CharField(max_length=120)
    body = models.CharField(max_length=500, blank=True)
    url = models.CharField(max_length=200, blank=True)
    run = models.ForeignKey(
        "delivery.Run",
        on_delete=models.CASCADE,
        related_name="+",
        null=True,
        blank=True,
        db_index=False,
        help_text="The run that it is about.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="notification_once"),
            models.CheckConstraint(
                condition=Q(
                    kind__in=[
                        "paused",
                        "partial",
                        "success",
                        "failed",
                        "canceled",
                        "missed",
                        "account",
                        "waiting",
                        "approval",
                        "webhook",
                    ]
                ),
                name="notification_kind_known",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="notification_feed"),
            models.Index(fields=["owner"], condition=Q(read_at__isnull=True), name="notification_unread"),
        ]

    def __str__(self) -> str:
        return self.title


class NotificationOutbox(models.Model):
    """A notification that is still to be passed on to addresses and team members; written with it, then deleted."""

    notification = models.OneToOneField(
        Notification, on_delete=models.CASCADE, primary_key=True, related_name="outbox"
    )

    class Meta:
        verbose_name_plural = "notification outbox"

    def __str__(self) -> str:
        return f"To pass on: {self.notification}"


class PushSubscription(models.Model):
    """A browser that asked for web push."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="push_subscriptions"
    )
    endpoint = models.URLField(max_length=1000, unique=True)
    p256dh = models.CharField(max_length=200)
    auth = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Browser of {self.user}"
