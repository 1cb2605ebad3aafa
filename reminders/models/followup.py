"""Messages to people who did not reply."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.models import Recipient
from reminders.models.reminder import Reminder


class Urgency(models.TextChoices):
    HIGH = "high", "High"
    MEDIUM = "medium", "Medium"
    LOW = "low", "Low"


class FollowUpStep(models.Model):
    """One message of a reminder, sent after so long without a reply."""

    reminder = models.ForeignKey(Reminder, on_delete=models.CASCADE, related_name="follow_up_steps")
    position = models.PositiveSmallIntegerField(default=0)
    after_hours = models.FloatField()
    text = models.TextField()
    other_wordings = ArrayField(
        models.TextField(),
        null=True,
        blank=True,
        help_text="Wordings B to E of the text. Without a list, braces in the text are no choices.",
    )
    urgency = models.CharField(max_length=10, choices=Urgency, default=Urgency.MEDIUM)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["reminder", "position"], name="follow_up_step_once"),
            models.CheckConstraint(condition=Q(after_hours__gt=0), name="follow_up_step_later"),
            models.CheckConstraint(
                condition=Q(urgency__in=["high", "medium", "low"]), name="follow_up_step_urgency"
            ),
        ]

    def __str__(self) -> str:
        return f"After {self.after_hours:g} h: {self.text[:40]}"


class FollowUp(models.Model):
    """One queued follow-up to one recipient. It leaves the queue with a reason."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Queued"
        SENDING = "sending", "Sending"
        SENT = "sent", "Sent"
        REMOVED = "removed", "Removed"

    # A deleted step keeps the follow-ups it sent, so that nobody is asked again from the beginning.
    step = models.ForeignKey(FollowUpStep, on_delete=models.SET_NULL, null=True, related_name="follow_ups")
    recipient = models.ForeignKey(Recipient, on_delete=models.CASCADE, related_name="follow_ups")
    target = models.ForeignKey(
        "delivery.RunTarget",
        on_delete=models.CASCADE,
        related_name="follow_ups",
        help_text="The message that got no reply.",
    )
    sent_as = models.OneToOneField(
        "delivery.RunTarget",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="follow_up",
        db_constraint=False,
        help_text="The follow-up itself, once it is being sent.",
    )
    urgency = models.CharField(max_length=10, choices=Urgency, default=Urgency.MEDIUM)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    due_at = models.DateTimeField()
    removed_reason = models.CharField(max_length=40, blank=True)
    queued_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["due_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["step", "target"], name="follow_up_once_per_step"),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "sending", "sent", "removed"]),
                name="follow_up_status_known",
            ),
            models.CheckConstraint(
                condition=Q(urgency__in=["high", "medium", "low"]), name="follow_up_urgency_known"
            ),
            models.CheckConstraint(
                condition=~Q(status="removed") | ~Q(removed_reason=""), name="follow_up_removed_for_a_reason"
            ),
            models.CheckConstraint(
                condition=~Q(status="sending") | Q(sent_as__isnull=False),
                name="follow_up_on_its_way_as_a_target",
            ),
            # Nobody gets a fourth while the third has not landed.
            models.UniqueConstraint(
                fields=["recipient"], condition=Q(status="sending"), name="follow_up_one_on_its_way"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at", "id"], condition=Q(status="queued"), name="follow_up_queue"),
            # Without what waits: for follow-ups that are due the planner would take this index for the other.
            models.Index(
                fields=["status", "-ended_at"],
                condition=Q(status__in=["sent", "removed"]),
                name="follow_up_over",
            ),
        ]

    def __str__(self) -> str:
        return f"Follow-up to {self.recipient}"
