"""Where a person's notifications go, when, and what is on its way."""

from datetime import time

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q

from accounts.encryption import EncryptedJSONField
from activity.models import Notification

TEST, CODE = "test", "code"  # kinds of notices that are not notifications
WEEK_MINUTES = 7 * 24 * 60


class Preferences(models.Model):
    """When a person may be disturbed, and who is told next where the person does not react."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_preferences"
    )
    quiet_from = models.TimeField(null=True, blank=True, help_text="In the person's time zone.")
    quiet_until = models.TimeField(null=True, blank=True)
    daily_at = models.TimeField(default=time(8), help_text="When the message of the day is sent.")
    escalate_minutes = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(WEEK_MINUTES)],
        help_text="How long a run may wait for a person. Empty: as the installation says; 0: nobody is told again.",
    )
    next_people = ArrayField(
        models.BigIntegerField(), default=list, blank=True, help_text="Ids of team members, in their order."
    )
    codes_on = models.DateField(null=True, blank=True, editable=False)
    codes = models.PositiveSmallIntegerField(default=0, editable=False, help_text="Sent on that day.")

    class Meta:
        verbose_name_plural = "preferences"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False) & ~Q(quiet_from=F("quiet_until")),
                name="preferences_quiet_hours",
            )
        ]

    def __str__(self) -> str:
        return f"Preferences of {self.person}"


class Follow(models.Model):
    """A team member who wants the notifications of an owner."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="follows")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="followers")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["person", "owner"], name="follow_once"),
            models.CheckConstraint(condition=~Q(person=F("owner")), name="follow_not_self"),
        ]

    def __str__(self) -> str:
        return f"{self.person} follows {self.owner}"


class Way(models.TextChoices):
    """How an address is reached."""

    EMAIL = "email", "E-mail"
    SERVICE = "service", "Chat or another service"


class Rhythm(models.TextChoices):
    """When an address gets what is new."""

    AT_ONCE = "at_once", "At once"
    HOURLY = "hourly", "Once an hour, gathered"
    DAILY = "daily", "Once a day, gathered"


class NoticeAddress(models.Model):
    """An address of one person outside of Paceline: a mailbox, or a channel of a chat service."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_addresses"
    )
    way = models.CharField(max_length=10, choices=Way)
    address = EncryptedJSONField(editable=False, help_text="The address, which holds secrets.")
    shown = models.CharField(max_length=120, help_text="The address without its secrets.")
    kinds = ArrayField(models.CharField(max_length=10, choices=Notification.Kind), blank=True)
    rhythm = models.CharField(max_length=10, choices=Rhythm, default=Rhythm.AT_ONCE)
    created_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="Nothing but the code is sent there before."
    )
    code_hash = models.CharField(max_length=64, blank=True, editable=False)
    code_at = models.DateTimeField(null=True, blank=True, editable=False)
    tries = models.PositiveSmallIntegerField(default=0, editable=False, help_text="Number of codes typed.")
    last_sent_at = models.DateTimeField(null=True, blank=True, editable=False)
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    problem = models.CharField(
        max_length=255, blank=True, editable=False, help_text="Why the last try failed."
    )
    retry_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Nothing is sent before."
    )
    switched_off_at = models.DateTimeField(null=True, blank=True)
    busy_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Until then a worker has it."
    )
    served_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name_plural = "notice addresses"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(way__in=["email", "service"]), name="notice_way_known"),
            models.CheckConstraint(
                condition=Q(rhythm__in=["at_once", "hourly", "daily"]), name="notice_rhythm_known"
            ),
        ]

    def __str__(self) -> str:
        return self.shown


class Notice(models.Model):
    """One thing that one address is told: first the outbox, then the log.

    Notices that are sent together share a `message`. It is written before they are sent, and kept when they are sent
    again: then the same notices go under the same name.
    """

    class State(models.TextChoices):
        PENDING = "pending", "Waiting"
        SENT = "sent", "Sent"
        GIVEN_UP = "given_up", "Given up"

    address = models.ForeignKey(
        NoticeAddress, on_delete=models.CASCADE, related_name="notices", db_index=False
    )
    kind = models.CharField(max_length=10)
    subject = models.CharField(max_length=100, help_text="What it is about, such as run:7.")
    title = models.CharField(max_length=120)
    body = models.CharField(max_length=500, blank=True)
    url = models.CharField(max_length=200, blank=True)
    happened_at = models.DateTimeField()
    number = models.PositiveIntegerField(
        default=1,
        help_text="How many notifications of this kind about this it stands for; it has the newest words.",
    )
    message = models.UUIDField(null=True, blank=True)
    due_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sent", "given_up"]), name="notice_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", ended_at__isnull=True)
                | (~Q(state="pending") & Q(ended_at__isnull=False)),
                name="notice_ends_once",
            ),
            models.UniqueConstraint(
                fields=["address", "kind", "subject"],
                condition=Q(state="pending", message__isnull=True),
                name="notice_collapsed",
            ),
        ]
        indexes = [
            models.Index(fields=["address", "due_at"], condition=Q(state="pending"), name="notice_due"),
            models.Index(
                fields=["address", "kind", "subject", "-ended_at"],
                condition=Q(state="sent"),
                name="notice_last",
            ),
            models.Index(fields=["address", "-id"], name="notice_log"),
            models.Index(fields=["ended_at"], condition=~Q(state="pending"), name="notice_over"),
        ]

    def __str__(self) -> str:
        return self.title


class Waiting(models.Model):
    """Something that waits for a person, and how far it has been told."""

    since = models.DateTimeField(help_text="When it began to wait.")
    told = ArrayField(
        models.BigIntegerField(), default=list, blank=True, help_text="Ids of those told again."
    )
    next_at = models.DateTimeField(null=True, blank=True, help_text="Empty: nobody else is told.")

    class Meta:
        abstract = True


class Escalation(Waiting):
    """A run that waits for a person."""

    run = models.OneToOneField("delivery.Run", on_delete=models.CASCADE, related_name="escalation")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="escalation_due")
        ]

    def __str__(self) -> str:
        return f"Escalation of {self.run}"


class AccountEscalation(Waiting):
    """An account that waits for a person: its service blocked it, or logged it out."""

    account = models.OneToOneField("accounts.Account", on_delete=models.CASCADE, related_name="escalation")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(next_at__isnull=False), name="account_escalation_due"
            )
        ]

    def __str__(self) -> str:
        return f"Escalation of {self.account}"
