"""Reminders: their message, recipients, accounts, schedule and window."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from accounts.models import Account, Recipient, Role, Tag
from accounts.models.account import Action, Channel
from accounts.zones import validate_zone
from reminders.models.media import Media

EVERY_DAY = 0b1111111


def default_start_hour() -> int:
    return int(settings.WINDOW_START_HOUR)


def default_end_hour() -> int:
    return int(settings.WINDOW_END_HOUR)


class ReminderQuerySet(models.QuerySet["Reminder"]):
    def due(self, now: object) -> "ReminderQuerySet":
        return self.filter(status=Reminder.Status.SCHEDULED, next_fire_at__lte=now)

    def untouched(self) -> "ReminderQuerySet":
        """Return drafts in which nothing was written or chosen yet."""
        drafts = self.filter(status=Reminder.Status.DRAFT, name="", archived_at=None)
        for rows in (Part, Reminder.recipients.through, Reminder.tags.through):
            drafts = drafts.exclude(Exists(rows._default_manager.filter(reminder=OuterRef("pk"))))
        return drafts


class Reminder(models.Model):
    """A draft until it is scheduled; each firing makes a run."""

    class Status(models.TextChoices):
        DRAFT = "draft", "Draft"
        SCHEDULED = "scheduled", "Scheduled"
        OFF = "off", "Switched off"
        DONE = "done", "Done"

    class Schedule(models.TextChoices):
        BY_HAND = "by_hand", "Manual"
        ONCE = "once", "Once"
        CRON = "cron", "Repeating"

    class OnClose(models.TextChoices):
        """The choice for a run that its window paused, at the next opening."""

        WAIT = "wait", "Pause and ask me"
        RESUME = "resume", "Continue automatically"

    class OnOverlap(models.TextChoices):
        """The choice for a due moment while the last run is still going."""

        SKIP = "skip", "Skip this time"
        QUEUE = "queue", "Start after it"

    class OnPaused(models.TextChoices):
        """The choice for a due moment while the last run is paused and waits for a person."""

        RUN = "run", "Send it anyway"
        QUEUE = "queue", "Start after it"
        SKIP = "skip", "Skip this time"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="reminders")
    name = models.CharField(max_length=120, blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.DRAFT)
    channel = models.CharField(max_length=20, choices=Channel, default=Channel.WHATSAPP)
    action = models.CharField(max_length=20, choices=Action, default=Action.MESSAGE)
    subject = models.CharField(max_length=200, blank=True, help_text="For e-mail and InMail.")

    accounts: "models.ManyToManyField[Account, ReminderAccount]" = models.ManyToManyField(
        Account, through="ReminderAccount", related_name="reminders"
    )
    recipients = models.ManyToManyField(Recipient, blank=True, related_name="reminders")
    tags = models.ManyToManyField(
        Tag, blank=True, related_name="reminders", help_text="Everyone who has the tag at sending time."
    )

    schedule = models.CharField(max_length=10, choices=Schedule, default=Schedule.ONCE)
    fire_at = models.DateTimeField(null=True, blank=True)
    cron = models.CharField(max_length=100, blank=True)
    zone = models.CharField("time zone", max_length=64, default="UTC", validators=[validate_zone])
    next_fire_at = models.DateTimeField(null=True, blank=True, editable=False)
    on_overlap = models.CharField(max_length=10, choices=OnOverlap, default=OnOverlap.SKIP)
    on_paused = models.CharField(
        max_length=10, choices=OnPaused, default=OnPaused.RUN, db_default=OnPaused.RUN.value
    )

    window_start_hour = models.PositiveSmallIntegerField(default=default_start_hour)
    window_end_hour = models.PositiveSmallIntegerField(default=default_end_hour)
    send_days = models.PositiveSmallIntegerField(default=EVERY_DAY, help_text="One bit per day, Monday is 1.")
    on_close = models.CharField(max_length=10, choices=OnClose, default=OnClose.WAIT)
    priority = models.SmallIntegerField(
        default=0, help_text="Runs with a higher number go first on the same account."
    )

    drip = models.BooleanField(
        default=False, help_text="Each recipient gets a fixed time when the run is made."
    )
    drip_gap_min = models.PositiveIntegerField(default=300, help_text="Seconds.")
    drip_gap_max = models.PositiveIntegerField(default=1200, help_text="Seconds.")

    # Empty values mean those of the settings.
    second_message_hours = models.FloatField(
        null=True, blank=True, help_text="Hours after the first message in which a reply gets the second."
    )
    follow_up_max_attempts = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Most follow-ups without a reply."
    )
    follow_up_cooldown_hours = models.FloatField(
        null=True, blank=True, help_text="Hours without messages after the last follow-up."
    )

    carries_messages = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="It carries the runs of single messages and is never fired itself.",
    )
    carries_queue = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="It carries the runs of a queue and is never fired itself.",
    )

    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        db_index=False,
        help_text="The last person who changed what is sent.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = ReminderQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(window_start_hour__gte=0)
                & Q(window_start_hour__lt=F("window_end_hour"))
                & Q(window_end_hour__lte=24),
                name="reminder_window",
                violation_error_message="Delivery hours must start before they end, on one day, from 0 to 24.",
            ),
            models.CheckConstraint(
                condition=Q(send_days__range=(1, EVERY_DAY)),
                name="reminder_send_days",
                violation_error_message="Choose at least one day.",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "scheduled", "off", "done"]), name="reminder_status_known"
            ),
            models.CheckConstraint(
                condition=Q(channel__in=["whatsapp", "email", "linkedin", "matrix"]),
                name="reminder_channel_known",
            ),
            models.CheckConstraint(
                condition=Q(action__in=["message", "email", "connection_request", "inmail"]),
                name="reminder_action_known",
            ),
            models.CheckConstraint(
                condition=Q(schedule__in=["by_hand", "once", "cron"]), name="reminder_schedule_known"
            ),
            models.CheckConstraint(
                condition=Q(on_close__in=["wait", "resume"]), name="reminder_on_close_known"
            ),
            models.CheckConstraint(
                condition=Q(on_overlap__in=["skip", "queue"]), name="reminder_on_overlap_known"
            ),
            models.CheckConstraint(
                condition=Q(on_paused__in=["run", "queue", "skip"]), name="reminder_on_paused_known"
            ),
            models.CheckConstraint(
                condition=Q(drip_gap_min__lte=F("drip_gap_max")), name="reminder_drip_gap"
            ),
            models.CheckConstraint(
                condition=Q(second_message_hours__isnull=True) | Q(second_message_hours__range=(0.1, 720)),
                name="reminder_second_message_hours",
                violation_error_message="The second message can be sent for 0.1 to 720 hours.",
            ),
            models.CheckConstraint(
                condition=Q(follow_up_max_attempts__isnull=True) | Q(follow_up_max_attempts__range=(1, 3)),
                name="reminder_follow_up_max_attempts",
                violation_error_message="Choose 1 to 3 follow-ups without a reply.",
            ),
            models.CheckConstraint(
                condition=Q(follow_up_cooldown_hours__isnull=True)
                | Q(follow_up_cooldown_hours__range=(0.1, 8760)),
                name="reminder_follow_up_cooldown_hours",
                violation_error_message="The time without messages is 0.1 to 8,760 hours.",
            ),
            models.UniqueConstraint(
                fields=["owner", "channel"],
                condition=Q(carries_messages=True),
                name="reminder_one_carrier",
            ),
            models.CheckConstraint(
                condition=~Q(status="scheduled")
                | Q(schedule="by_hand")
                | Q(schedule="once", fire_at__isnull=False)
                | (Q(schedule="cron") & ~Q(cron="")),
                name="reminder_scheduled_has_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_fire_at"],
                condition=Q(status="scheduled", next_fire_at__isnull=False),
                name="reminder_due",
            ),
            models.Index(fields=["owner", "-id"], name="reminder_by_owner"),
        ]

    def __str__(self) -> str:
        return self.name or f"Reminder {self.pk}"

    @property
    def role_to_edit(self) -> Role:
        """Return the role that a change needs: what is not a draft any more may be sent at any moment."""
        return Role.WRITE if self.status == Reminder.Status.DRAFT else Role.SEND


class ReminderAccount(models.Model):
    """An account of a reminder, in the order in which targets are divided."""

    reminder = models.ForeignKey(Reminder, on_delete=models.CASCADE, related_name="reminder_accounts")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="reminder_accounts")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["reminder", "account"], name="reminder_account_once")]

    def __str__(self) -> str:
        return f"{self.reminder}: {self.account}"


class Part(models.Model):
    """One text or one media item of a reminder. Each is one message."""

    class Role(models.TextChoices):
        FIRST = "first", "First message"
        SECOND = "second", "Second message, after a reply"

    class Kind(models.TextChoices):
        TEXT = "text", "Text"
        MEDIA = "media", "Media"

    reminder = models.ForeignKey(Reminder, on_delete=models.CASCADE, related_name="parts")
    role = models.CharField(max_length=10, choices=Role, default=Role.FIRST)
    position = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TEXT)
    text = models.TextField(blank=True, help_text="The text, or the caption of a media item.")
    other_wordings = ArrayField(
        models.TextField(),
        null=True,
        blank=True,
        help_text="Wordings B to E of the text. Without a list, braces in the text are no choices.",
    )
    media = models.ForeignKey(Media, on_delete=models.PROTECT, null=True, blank=True, related_name="parts")

    class Meta:
        ordering = ["role", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["reminder", "role", "position"],
                name="part_once_per_position",
                deferrable=models.Deferrable.DEFERRED,
            ),
            models.CheckConstraint(condition=Q(role__in=["first", "second"]), name="part_role_known"),
            models.CheckConstraint(
                condition=(Q(kind="text", media__isnull=True) & ~Q(text=""))
                | Q(kind="media", media__isnull=False),
                name="part_has_its_content",
                violation_error_message="A text part needs a text, and a media part needs a file.",
            ),
        ]

    def __str__(self) -> str:
        return f"Part {self.position + 1} of {self.reminder}"
