"""Requests that a second person approves something before it leaves, and the number above which an owner wants that."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models.account import Account


class ApprovalNumber(models.Model):
    """The number of an owner: what goes to more recipients needs a second person. It is stricter than the setting."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="approval_number"
    )
    above = models.PositiveIntegerField(help_text="Recipients. What goes to more needs a second person.")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(above__gte=1), name="approval_number_positive")]

    def __str__(self) -> str:
        return f"Approval above {self.above:,} recipients for {self.owner}"


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self) -> "ApprovalQuerySet":
        return self.filter(state=Approval.State.WAITING)

    def approved(self) -> "ApprovalQuerySet":
        return self.filter(state=Approval.State.APPROVED)

    def ended(self, now: datetime) -> "ApprovalQuerySet":
        """Return those that wait although their time is over."""
        return self.waiting().filter(expires_at__lte=now)


class Approval(models.Model):
    """A request: what somebody wants to let leave, and what a second person decided."""

    class Kind(models.TextChoices):
        REMINDER = "reminder", "Schedule a reminder"
        SEND = "send", "Send a reminder now"
        HAND_OVER = "hand_over", "Hand over a run"
        QUEUE = "queue", "Send from a queue"
        LOOSEN = "loosen", "Ask less often for approval"

    class State(models.TextChoices):
        WAITING = "waiting", "Waits for approval"
        APPROVED = "approved", "Approved"
        REFUSED = "refused", "Refused"
        WITHDRAWN = "withdrawn", "Withdrawn"
        EXPIRED = "expired", "Not decided in time"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="approvals", db_index=False
    )
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    title = models.CharField(max_length=200)
    why = models.CharField(max_length=300, help_text="Why a second person is needed.")
    reminder = models.ForeignKey(
        "reminders.Reminder",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="approvals",
        db_index=False,
        help_text="What is sent; of a queue, the reminder that carries its runs.",
    )
    run = models.ForeignKey(
        "delivery.Run",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The run that is handed over, or that the approval made.",
    )
    account = models.ForeignKey(
        Account,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The account whose mark is lifted.",
    )
    content = models.CharField(max_length=64, help_text="The fingerprint of what is approved.")
    recipients = models.PositiveIntegerField(default=0)
    covers = models.PositiveIntegerField(default=0, help_text="The most recipients that the approval is for.")
    said = models.JSONField(default=dict, blank=True, help_text="The answers of the person who asked.")
    key = models.UUIDField(default=uuid.uuid4, editable=False)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["reminder", "send", "hand_over", "queue", "loosen"]),
                name="approval_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "approved", "refused", "withdrawn", "expired"]),
                name="approval_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["approved", "refused"]) | Q(decided_at__isnull=False),
                name="approval_decided_at_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="approved")
                | Q(asked_by__isnull=True)
                | Q(decided_by__isnull=True)
                | ~Q(asked_by=F("decided_by")),
                name="approval_by_a_second_person",
            ),
            models.CheckConstraint(
                condition=~Q(state="refused") | ~Q(reason=""), name="approval_refused_with_a_reason"
            ),
            models.UniqueConstraint(
                fields=["reminder", "kind"],
                condition=Q(state="waiting", reminder__isnull=False),
                name="approval_one_waits",
            ),
        ]
        indexes = [
            models.Index(fields=["owner"], condition=Q(state="waiting"), name="approval_waiting"),
            models.Index(fields=["reminder", "-id"], name="approval_of_reminder"),
            models.Index(fields=["run"], condition=Q(run__isnull=False), name="approval_of_run"),
            models.Index(fields=["account"], condition=Q(account__isnull=False), name="approval_of_account"),
            models.Index(fields=["owner", "-id"], name="approval_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.title}"
