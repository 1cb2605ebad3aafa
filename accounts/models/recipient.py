"""Whom accounts reach."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q

from accounts.models.account import Account, Channel


class Tag(models.Model):
    """A list of recipients by name."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=60)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="tag_once")]

    def __str__(self) -> str:
        return self.name


class RecipientQuerySet(models.QuerySet["Recipient"]):
    def reachable(self) -> "RecipientQuerySet":
        """Those to whom something may be sent at all."""
        return self.filter(opted_out_at__isnull=True, blocked_at__isnull=True, archived_at__isnull=True)


class Recipient(models.Model):
    """One address that an account can reach. It exists once per owner and channel."""

    class Kind(models.TextChoices):
        GROUP = "group", "Group"
        PERSON = "person", "Person"
        MAILBOX = "mailbox", "Mailbox"
        ROOM = "room", "Room"
        PROFILE = "profile", "Profile"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="recipients")
    channel = models.CharField(max_length=20, choices=Channel)
    kind = models.CharField(max_length=10, choices=Kind)
    address = models.CharField(max_length=255, help_text="In its canonical form.")
    name = models.CharField(max_length=200, blank=True)
    fields = models.JSONField(default=dict, blank=True, help_text="Usable as variables in messages.")
    account = models.ForeignKey(
        Account,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="recipients",
        help_text="Set where only this account reaches it, as with a group.",
    )
    tags = models.ManyToManyField(Tag, blank=True, related_name="recipients")

    opted_out_at = models.DateTimeField(null=True, blank=True)
    blocked_at = models.DateTimeField(null=True, blank=True)
    converted_at = models.DateTimeField(null=True, blank=True)
    not_interested_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(
        default=0, editable=False, help_text="Follow-ups since the last reply."
    )
    attempts_reset_at = models.DateTimeField(null=True, blank=True, editable=False)
    cooldown_until = models.DateTimeField(null=True, blank=True)
    last_inbound_at = models.DateTimeField(null=True, blank=True, editable=False)

    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = RecipientQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "channel", "address"], name="recipient_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["group", "person", "mailbox", "room", "profile"]),
                name="recipient_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(channel__in=["whatsapp", "email", "linkedin", "matrix"]),
                name="recipient_channel_known",
            ),
            models.CheckConstraint(condition=~Q(address=""), name="recipient_address_given"),
            models.CheckConstraint(condition=Q(attempts__lte=3), name="recipient_attempts_at_most_3"),
        ]
        indexes = [
            models.Index(fields=["owner", "name", "id"], name="recipient_by_name"),
            models.Index(
                fields=["cooldown_until"],
                condition=Q(cooldown_until__isnull=False),
                name="recipient_cooling_down",
            ),
            GinIndex(SearchVector("name", "address", config="simple"), name="recipient_search"),
        ]

    def __str__(self) -> str:
        return self.name or self.address


class ConsentChange(models.Model):
    """An opt-out or an opt-in, and how it came about."""

    class Move(models.TextChoices):
        OUT = "out", "Opted out"
        IN = "in", "Opted in"

    recipient = models.ForeignKey(Recipient, on_delete=models.CASCADE, related_name="consent_changes")
    move = models.CharField(max_length=3, choices=Move)
    at = models.DateTimeField()
    how = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [models.CheckConstraint(condition=Q(move__in=["out", "in"]), name="consent_move_known")]

    def __str__(self) -> str:
        return f"{self.recipient}: {self.get_move_display()}"
