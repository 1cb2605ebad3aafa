"""Recipients, which accounts send to, their tags and their consent."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from accounts.addresses import SHAPES, BadAddressError, canonical
from accounts.models.account import Account, Channel
from accounts.regions import region_of


def canonical_address() -> Q:
    """Return the condition that the address has the pattern of its channel and kind."""
    shape = Q()
    for channel, kind, pattern in SHAPES:
        shape |= Q(channel=channel, kind=kind, address__regex=pattern)
    return shape


class Tag(models.Model):
    """A named list of recipients."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=60)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="tag_once")]

    def __str__(self) -> str:
        return self.name


class RecipientQuerySet(models.QuerySet["Recipient"]):
    def reachable(self) -> "RecipientQuerySet":
        """Return the recipients to whom messages may be sent."""
        return self.filter(
            opted_out_at__isnull=True,
            blocked_at__isnull=True,
            undeliverable_at__isnull=True,
            archived_at__isnull=True,
            problem="",
        )


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
    kind = models.CharField(max_length=10, choices=Kind, help_text="Follows from the address.")
    address = models.CharField(max_length=255, help_text="In its canonical form.")
    name = models.CharField(max_length=200, blank=True)
    fields = models.JSONField(default=dict, blank=True, help_text="Usable as variables in messages.")
    account = models.ForeignKey(
        Account,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="recipients",
        help_text="Set if only this account reaches it, as with a group.",
    )
    tags = models.ManyToManyField(Tag, blank=True, related_name="recipients")

    opted_out_at = models.DateTimeField(null=True, blank=True)
    blocked_at = models.DateTimeField(null=True, blank=True)
    undeliverable_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when the address is known to receive nothing."
    )
    undeliverable_for = models.CharField(
        max_length=255, blank=True, default="", db_default="", help_text="The reason, in the service's words."
    )
    undeliverable_source = models.CharField(
        max_length=100, blank=True, default="", db_default="", help_text="The report or answer that said so."
    )
    converted_at = models.DateTimeField(null=True, blank=True)
    not_interested_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(
        default=0, editable=False, help_text="Follow-ups since the last reply."
    )
    attempts_reset_at = models.DateTimeField(null=True, blank=True, editable=False)
    cooldown_until = models.DateTimeField(null=True, blank=True)
    last_inbound_at = models.DateTimeField(null=True, blank=True, editable=False)

    problem = models.CharField(
        max_length=40,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Why no message can be sent to it, as found when groups were read.",
    )
    left_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When its account was found to have left the group; the recipient is archived then.",
    )

    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    erased_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When everything about this person was erased. Of the address a keyed hash stays.",
    )

    objects = RecipientQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "channel", "address"], name="recipient_once"),
            models.CheckConstraint(
                condition=canonical_address() | Q(erased_at__isnull=False, address__startswith="erased:"),
                name="recipient_address_canonical",
                violation_error_message="The address is not in the form that its channel asks for.",
            ),
            models.CheckConstraint(condition=Q(attempts__lte=3), name="recipient_attempts_at_most_3"),
        ]
        indexes = [
            models.Index(fields=["owner", "name", "id"], name="recipient_by_name"),
            models.Index(fields=["name", "id"], name="recipient_of_anybody"),
            # Few recipients are in any of these states, so a list of them must not read all others.
            models.Index(
                fields=["owner", "name", "id"],
                condition=Q(opted_out_at__isnull=False)
                | Q(blocked_at__isnull=False)
                | Q(cooldown_until__isnull=False)
                | Q(not_interested_at__isnull=False)
                | Q(converted_at__isnull=False)
                | Q(archived_at__isnull=False),
                name="recipient_set_apart",
            ),
            models.Index(
                fields=["owner", "name", "id"],
                condition=Q(undeliverable_at__isnull=False),
                name="recipient_undeliverable",
            ),
            models.Index(
                fields=["cooldown_until"],
                condition=Q(cooldown_until__isnull=False),
                name="recipient_cooling_down",
            ),
            models.Index(
                fields=["owner", "channel"], condition=Q(erased_at__isnull=False), name="recipient_erased"
            ),
            GinIndex(SearchVector("name", "address", config="simple"), name="recipient_search"),
        ]

    def __str__(self) -> str:
        return self.name or self.address

    def unique_error_message(self, *_: object) -> ValidationError:
        return ValidationError("This recipient already exists. Search for its address in the list.")

    def clean(self) -> None:
        """Bring the address into its canonical form: forms and the admin call this before they look for duplicates."""
        if not self.address or self.channel not in Channel.values or self.owner_id is None:
            return
        if self.erased_at is not None:
            raise ValidationError("This person was erased. Add the address again as a new recipient.")
        try:
            found = canonical(self.channel, self.address, region=region_of(self.owner))
        except BadAddressError as refusal:
            raise ValidationError({"address": str(refusal)}) from refusal
        self.kind, self.address = found.kind, found.text
        self._keep_what_they_said()
        self._forget_another_address()

    def _keep_what_they_said(self) -> None:
        """Refuse a new address for a recipient who opted out: the opt-out belongs to the old address."""
        opted_out = Recipient.objects.filter(pk=self.pk, opted_out_at__isnull=False)
        if self.pk is not None and opted_out.exclude(address=self.address).exists():
            raise ValidationError(
                {
                    "address": "They opted out at this address. Leave it, and add the other one as a new recipient."
                }
            )

    def _forget_another_address(self) -> None:
        """Let a corrected address be tried: what is known about deliveries belongs to the old one."""
        marked = Recipient.objects.filter(pk=self.pk, undeliverable_at__isnull=False)
        if self.pk is not None and marked.exclude(address=self.address).exists():
            self.undeliverable_at, self.undeliverable_for, self.undeliverable_source = None, "", ""


class ConsentChange(models.Model):
    """One change of consent and its reason. Written by `accounts/recipients/consent.py`."""

    class Move(models.TextChoices):
        OUT = "out", "Opted out"
        IN = "in", "Opted in"
        BLOCKED = "blocked", "Blocked"
        UNBLOCKED = "unblocked", "Unblocked"
        DEAD = "dead", "Undeliverable"
        ALIVE = "alive", "Deliverable again"
        CONVERTED = "converted", "Converted"
        REOPENED = "reopened", "No longer converted"

    # Kept after the recipient is deleted: otherwise a new import would allow messages to them again.
    recipient = models.ForeignKey(Recipient, on_delete=models.PROTECT, related_name="consent_changes")
    move = models.CharField(max_length=10, choices=Move)
    at = models.DateTimeField()
    how = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    move__in=["out", "in", "blocked", "unblocked", "dead", "alive", "converted", "reopened"]
                ),
                name="consent_move_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.recipient}: {self.get_move_display()}"
