"""Queues: when and from which accounts their items are sent."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models import Account
from accounts.models.account import Action, Channel
from accounts.zones import validate_zone
from reminders.models import Reminder
from reminders.models.reminder import EVERY_DAY, default_end_hour, default_start_hour


class Queue(models.Model):
    """A list of items that are sent in one window, from the same accounts."""

    class Pace(models.TextChoices):
        """The choice of what decides when an item leaves."""

        PLANNED = "planned", "At planned times"
        STEADY = "steady", "At each sender's own pace"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="queues")
    name = models.CharField(max_length=100)
    channel = models.CharField(max_length=20, choices=Channel, default=Channel.EMAIL)
    action = models.CharField(max_length=20, choices=Action, default=Action.EMAIL)
    pace = models.CharField(max_length=10, choices=Pace, default=Pace.PLANNED)

    subject = models.CharField(
        max_length=200, blank=True, help_text="For items without a subject of their own."
    )
    text = models.TextField(blank=True, help_text="For items without a text of their own.")

    accounts: "models.ManyToManyField[Account, QueueAccount]" = models.ManyToManyField(
        Account, through="QueueAccount", related_name="queues"
    )
    zone = models.CharField("time zone", max_length=64, default="UTC", validators=[validate_zone])
    window_start_hour = models.PositiveSmallIntegerField(default=default_start_hour)
    window_end_hour = models.PositiveSmallIntegerField(default=default_end_hour)
    send_days = models.PositiveSmallIntegerField(default=EVERY_DAY, help_text="One bit per day, Monday is 1.")
    priority = models.SmallIntegerField(
        default=0, help_text="Items of a queue with a higher number go first on the same account."
    )

    # A run belongs to a reminder: this one is archived, and is never fired itself.
    carrier = models.OneToOneField(Reminder, on_delete=models.PROTECT, editable=False, related_name="queue")
    paused_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(window_start_hour__gte=0)
                & Q(window_start_hour__lt=F("window_end_hour"))
                & Q(window_end_hour__lte=24),
                name="queue_window",
                violation_error_message="Delivery hours must start before they end, on one day, from 0 to 24.",
            ),
            models.CheckConstraint(
                condition=Q(send_days__range=(1, EVERY_DAY)),
                name="queue_send_days",
                violation_error_message="Choose at least one day.",
            ),
            models.CheckConstraint(condition=Q(pace__in=["planned", "steady"]), name="queue_pace_known"),
            models.CheckConstraint(
                condition=Q(channel__in=["whatsapp", "email", "linkedin", "matrix"]),
                name="queue_channel_known",
            ),
            models.CheckConstraint(
                condition=Q(action__in=["message", "email", "connection_request", "inmail"]),
                name="queue_action_known",
            ),
        ]
        indexes = [models.Index(fields=["owner", "-id"], name="queue_by_owner")]

    def __str__(self) -> str:
        return self.name


class QueueAccount(models.Model):
    """An account that sends items of a queue."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="queue_accounts")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="queue_accounts")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["queue", "account"], name="queue_account_once")]

    def __str__(self) -> str:
        return f"{self.queue}: {self.account}"
