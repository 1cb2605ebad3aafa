"""Accounts, which messages are sent from, and their limits."""

import secrets
import uuid

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from accounts import ceilings, warm_up_plan
from accounts.encryption import EncryptedJSONField
from accounts.profiles import DEFAULT_PROFILE, PROFILES, WarmUp
from accounts.zones import validate_zone


class Channel(models.TextChoices):
    WHATSAPP = "whatsapp", "WhatsApp"
    EMAIL = "email", "E-mail"
    LINKEDIN = "linkedin", "LinkedIn"
    MATRIX = "matrix", "Matrix"


class Action(models.TextChoices):
    """The kinds of action that a limit counts."""

    MESSAGE = "message", "Message"
    EMAIL = "email", "E-mail"
    CONNECTION_REQUEST = "connection_request", "Connection request"
    INMAIL = "inmail", "InMail"


def new_webhook() -> dict[str, str]:
    """Return a random key for the account's webhook address, and a secret for its service to sign with."""
    return {"key": secrets.token_urlsafe(18), "secret": secrets.token_urlsafe(32)}


EVERY_DAY = 0b1111111
TROUBLES = ["", "unreachable", "not_connected", "rate_limited", "server_errors", "in_doubt"]


class AccountQuerySet(models.QuerySet["Account"]):
    def active(self) -> "AccountQuerySet":
        return self.filter(status=Account.Status.ACTIVE)

    def due(self, now: object) -> "AccountQuerySet":
        """Return the accounts whose wake-up time has come."""
        return self.filter(wake_at__lte=now)


class Account(models.Model):
    """One sending identity on one channel, through one transport, with its own limits."""

    class Status(models.TextChoices):
        """The values of `delivery.states.AccountStatus`, which also defines the legal changes."""

        UNPAIRED = "unpaired", "Not connected"
        PAIRING = "pairing", "Pairing"
        ACTIVE = "active", "Active"
        PAUSED = "paused", "Paused"
        OFFLINE = "offline", "Offline"
        FLAGGED = "flagged", "Flagged"

    class Trouble(models.TextChoices):
        """The kind of trouble that keeps an account from sending although it is allowed to."""

        UNREACHABLE = "unreachable", "No answer from the service"
        NOT_CONNECTED = "not_connected", "Not connected to the service"
        RATE_LIMITED = "rate_limited", "The service asked us to slow down"
        SERVER_ERRORS = "server_errors", "The service answers with errors"
        IN_DOUBT = "in_doubt", "The service does not say whether messages arrived"

    class Health(models.TextChoices):
        """The consequences of the share of messages that fail or come back (SPEC L3)."""

        GOOD = "", "Good"
        SLOW = "slow", "Slowed down"
        PAUSED = "paused", "Paused"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="accounts")
    name = models.CharField(max_length=100)
    channel = models.CharField(max_length=20, choices=Channel)
    transport = models.CharField(max_length=20, help_text="The kind of service that delivers its messages.")
    profile = models.CharField(
        max_length=40, choices=[(p.key, p.label) for p in PROFILES.values()], default=DEFAULT_PROFILE
    )
    # The release before sets no value: what it adds has the limits that it knows.
    as_before = models.BooleanField(
        "limits as before 0.3",
        default=False,
        db_default=True,
        help_text="The profile has the limits that it had before version 0.3.0.",
    )
    zone = models.CharField("time zone", max_length=64, default="UTC", validators=[validate_zone])
    own_address = models.CharField(
        max_length=255, blank=True, help_text="Used for test messages. A code confirms it first."
    )
    credentials = EncryptedJSONField(blank=True, default=dict)

    session_key = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="A hash of the session that the credentials name; empty without one.",
    )

    public_id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False)
    webhook = EncryptedJSONField(default=new_webhook, editable=False)
    reports_to = models.CharField(
        max_length=255,
        blank=True,
        editable=False,
        help_text="The PUBLIC_URL that was last registered with the service.",
    )
    reports_tried_at = models.DateTimeField(null=True, blank=True, editable=False)
    polled_at = models.DateTimeField(null=True, blank=True, editable=False)
    poll_since = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The position from which the next poll continues.",
    )

    status = models.CharField(max_length=10, choices=Status, default=Status.UNPAIRED)
    status_reason = models.CharField(max_length=255, blank=True)
    status_changed_at = models.DateTimeField(null=True, blank=True)
    status_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    session_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When the session last changed, by the service's clock.",
    )
    first_contacts_until = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Until then the service allows no messages to new people.",
    )
    first_contacts_guessed = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="The service did not say when that ends."
    )
    service_per_24_hours = models.PositiveIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="The account's share of its service's own limit of 24 hours.",
    )

    group_concurrency = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Messages at the same time. Leave empty to use the default."
    )
    shows_typing = models.BooleanField(
        "show “typing”",
        default=False,
        db_default=False,
        help_text="Mark the chat as seen and show “typing” for a few seconds before each message.",
    )
    work_start_hour = models.PositiveSmallIntegerField(
        "working hours from",
        null=True,
        blank=True,
        help_text="Nothing is sent before this hour. Empty: any hour.",
    )
    work_end_hour = models.PositiveSmallIntegerField("working hours until", null=True, blank=True)
    work_days = models.PositiveSmallIntegerField(
        "working days", default=EVERY_DAY, db_default=EVERY_DAY, help_text="One bit per day, Monday is 1."
    )
    reconnected_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="From then on its pace grows to the full one."
    )
    warmup_start = models.PositiveIntegerField(null=True, blank=True, help_text="Messages on the first day.")
    warmup_step = models.PositiveIntegerField(
        null=True, blank=True, help_text="Messages added after each day without errors."
    )
    warmup_ceiling = models.PositiveIntegerField(
        null=True, blank=True, help_text="Most messages per day; the warm-up ends there."
    )
    warmup_clean_days = models.PositiveIntegerField(default=0, editable=False)
    warmup_counted_on = models.DateField(null=True, blank=True, editable=False)

    needs_approval = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="A second person has to approve what it sends.",
    )

    # Written by the engine.
    wake_at = models.DateTimeField(null=True, blank=True, editable=False)
    waiting_for = models.CharField(max_length=20, blank=True, editable=False)
    waiting_until = models.DateTimeField(null=True, blank=True, editable=False)
    waiting_detail = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="A sentence, if the reason alone is not enough.",
    )
    fence = models.BigIntegerField(default=0, editable=False)
    limiter_marks = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="The marks of the limiter at the end of the shift with the number `marks_fence`.",
    )
    marks_fence = models.BigIntegerField(null=True, blank=True, editable=False)
    slow_factor = models.FloatField(default=1, editable=False)
    clean_sends = models.PositiveIntegerField(default=0, editable=False)
    slowed_by_report_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Ends the shift that knew nothing of it."
    )
    held_until = models.DateTimeField(null=True, blank=True, editable=False)
    trouble_kind = models.CharField(
        max_length=20, choices=Trouble, blank=True, default="", db_default="", editable=False
    )
    trouble = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The cause, in the words of the transport.",
    )
    trouble_since = models.DateTimeField(null=True, blank=True, editable=False)
    trouble_kind_since = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When another kind of trouble took its place."
    )
    trouble_count = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Failures in a row that were not caused by a recipient.",
    )

    health = models.CharField(
        max_length=10, choices=Health, blank=True, default="", db_default="", editable=False
    )
    health_reason = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The figure for which it is slowed down or paused, and a remedy.",
    )
    health_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When it continues by itself."
    )
    health_from = models.DateField(
        null=True, blank=True, editable=False, help_text="Earlier days count no more: it started afresh."
    )
    health_base = models.JSONField(
        null=True, blank=True, editable=False, help_text="The counts of that day before it started afresh."
    )

    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = AccountQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "channel", "name"], name="account_name_once"),
            models.UniqueConstraint(
                fields=["session_key"],
                condition=Q(archived_at__isnull=True) & ~Q(session_key=""),
                name="account_session_once",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["unpaired", "pairing", "active", "paused", "offline", "flagged"]),
                name="account_status_known",
            ),
            models.CheckConstraint(
                condition=Q(channel__in=["whatsapp", "email", "linkedin", "matrix"]),
                name="account_channel_known",
            ),
            models.CheckConstraint(
                condition=Q(trouble_kind__in=TROUBLES),
                name="account_trouble_known",
            ),
            models.CheckConstraint(
                condition=Q(health__in=["", "slow"], health_until__isnull=True)
                | Q(health="paused", health_until__isnull=False),
                name="account_health_known",
            ),
            models.CheckConstraint(
                condition=Q(slow_factor__gte=1), name="account_never_faster_than_its_limits"
            ),
            models.CheckConstraint(
                condition=Q(group_concurrency__isnull=True) | Q(group_concurrency__range=(1, 64)),
                name="account_group_concurrency_range",
            ),
            models.CheckConstraint(
                condition=Q(work_start_hour__isnull=True, work_end_hour__isnull=True)
                | Q(
                    work_start_hour__gte=0,
                    work_start_hour__lt=F("work_end_hour"),
                    work_end_hour__lte=24,
                    work_start_hour__isnull=False,
                    work_end_hour__isnull=False,
                ),
                name="account_working_hours_whole",
                violation_error_message="Enter both hours, the later one second, or none of them.",
            ),
            models.CheckConstraint(condition=Q(work_days__range=(1, EVERY_DAY)), name="account_working_days"),
            models.CheckConstraint(
                condition=Q(warmup_start__isnull=True, warmup_step__isnull=True, warmup_ceiling__isnull=True)
                | Q(
                    warmup_start__gte=1,
                    warmup_step__gte=1,
                    warmup_ceiling__gte=F("warmup_start"),
                    # A check fails only when its condition is false, and a comparison with NULL is not false.
                    warmup_start__isnull=False,
                    warmup_step__isnull=False,
                    warmup_ceiling__isnull=False,
                ),
                name="account_warmup_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["wake_at"], condition=Q(wake_at__isnull=False), name="account_due"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def slowness(self) -> float:
        """Return the factor by which gaps are longer: after warnings of the service, and for the account's health."""
        return self.slow_factor * (settings.HEALTH_SLOW_FACTOR if self.health == self.Health.SLOW else 1.0)

    @property
    def warm_up(self) -> WarmUp | None:
        """Return the account's warm-up plan: its own, or its profile's."""
        return warm_up_plan.plan(
            profile=self.profile,
            start=self.warmup_start,
            step=self.warmup_step,
            ceiling=self.warmup_ceiling,
        )

    def begin_warm_up_again(self, *, unless: WarmUp | None) -> tuple[str, ...]:
        """Reset the counted days, unless the plan is unchanged. Return the names of the fields to save."""
        if not warm_up_plan.begins_again(unless, self.warm_up):
            return ()
        self.warmup_clean_days = 0
        if unless is not None:
            return ("warmup_clean_days",)  # a day with known trouble stays marked
        self.warmup_counted_on = None  # messages sent without a plan prove nothing for this one
        return "warmup_clean_days", "warmup_counted_on"


class Limit(models.Model):
    """The limits of one account for one action. An empty value leaves it to the profile."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="limits")
    action = models.CharField(max_length=20, choices=Action, default=Action.MESSAGE)
    per_minute = models.PositiveIntegerField(null=True, blank=True)
    per_hour = models.PositiveIntegerField(null=True, blank=True)
    per_day = models.PositiveIntegerField(null=True, blank=True)
    per_24_hours = models.PositiveIntegerField("per 24 hours", null=True, blank=True)
    per_7_days = models.PositiveIntegerField("per 7 days", null=True, blank=True)
    per_30_days = models.PositiveIntegerField("per 30 days", null=True, blank=True)
    new_per_day = models.PositiveIntegerField("new people per day", null=True, blank=True)
    new_per_week = models.PositiveIntegerField("new people per week", null=True, blank=True)
    gap_min = models.FloatField(
        "shortest gap", null=True, blank=True, help_text="Seconds between two messages."
    )
    gap_max = models.FloatField("longest gap", null=True, blank=True)
    batch_size = models.PositiveIntegerField(null=True, blank=True)
    batch_pause = models.FloatField(null=True, blank=True, help_text="Seconds.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "action"], name="limit_once_per_action"),
            models.CheckConstraint(
                condition=Q(action__in=["message", "email", "connection_request", "inmail"]),
                name="limit_action_known",
            ),
            models.CheckConstraint(
                condition=(Q(per_minute__isnull=True) | Q(per_minute__gte=1))
                & (Q(per_hour__isnull=True) | Q(per_hour__gte=1))
                & (Q(per_day__isnull=True) | Q(per_day__gte=1)),
                name="limit_at_least_one",
            ),
            models.CheckConstraint(
                condition=(Q(per_24_hours__isnull=True) | Q(per_24_hours__gte=1))
                & (Q(per_7_days__isnull=True) | Q(per_7_days__gte=1))
                & (Q(per_30_days__isnull=True) | Q(per_30_days__gte=1)),
                name="limit_of_long_spans_at_least_one",
            ),
            models.CheckConstraint(
                condition=(Q(new_per_day__isnull=True) | Q(new_per_day__gte=1))
                & (Q(new_per_week__isnull=True) | Q(new_per_week__gte=1)),
                name="limit_of_new_people_at_least_one",
            ),
            models.CheckConstraint(
                condition=Q(gap_min__isnull=True, gap_max__isnull=True)
                | Q(
                    gap_min__gte=0,
                    gap_max__gte=F("gap_min"),
                    gap_max__lte=86_400,
                    gap_min__isnull=False,
                    gap_max__isnull=False,
                ),
                name="limit_gap_ordered",
            ),
            models.CheckConstraint(
                condition=Q(batch_size__isnull=True, batch_pause__isnull=True)
                | Q(
                    batch_size__gte=1,
                    batch_pause__gt=0,
                    batch_pause__lte=86_400,
                    batch_size__isnull=False,
                    batch_pause__isnull=False,
                ),
                name="limit_batch_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_action_display()} limits of {self.account}"

    def clean(self) -> None:
        """Refuse limits beyond what this installation allows; forms, the admin and the API all come here."""
        if not hasattr(self, "account"):
            return
        values = {name: getattr(self, name) for name in ceilings.WORDS}
        if refused := ceilings.refusals(self.account.channel, self.account.transport, values):
            raise ValidationError(dict(refused))
        profile = PROFILES[self.account.profile]
        if profile.longest_gap is not None and (self.gap_max or 0) > profile.longest_gap:
            raise ValidationError(
                {
                    "gap_max": f"An account of the profile “{profile.label}” leaves {profile.shortest_gap:g} to "
                    f"{profile.longest_gap:g} seconds between two messages. For a longer gap choose another profile, "
                    "such as “Careful WhatsApp” or “Slow sender”."
                }
            )
