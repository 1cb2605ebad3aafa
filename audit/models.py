"""The tables of the audit log. The database itself refuses to change their rows (`migrations/0001_initial.py`)."""

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.utils import timezone

from audit.actions import ACTIONS
from audit.origin import Door


class Entry(models.Model):
    """One change: who did what to which thing, from where.

    Nothing here names a recipient but its number: a row is never changed, and a recipient may be erased. What was
    typed about a recipient lies in `PersonalValues`.
    """

    at = models.DateTimeField(default=timezone.now, editable=False)
    # No constraints: a person, an owner or a thing may be gone one day, and the row must not change with it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        blank=True,
        related_name="+",
        help_text="Whose thing it is. Empty for what concerns the whole installation.",
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        blank=True,
        related_name="+",
    )
    actor_name = models.CharField(max_length=150, blank=True, default="")
    door = models.CharField(max_length=10, choices=Door.choices)
    via = models.CharField(max_length=200, blank=True, default="", help_text="The key or the command.")
    address = models.CharField(max_length=45, blank=True, default="")
    action = models.CharField(max_length=40)
    thing_type = models.CharField(max_length=40, blank=True, default="")
    thing_id = models.BigIntegerField(null=True, blank=True)
    thing_name = models.CharField(max_length=200, blank=True, default="")
    before = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    after = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    note = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        constraints = [
            models.CheckConstraint(condition=Q(door__in=Door.values), name="audit_door_known"),
            models.CheckConstraint(condition=~Q(action=""), name="audit_action_named"),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="audit_by_owner"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["thing_type", "thing_id", "-id"], name="audit_by_thing"),
            models.Index(fields=["at"], name="audit_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name or self.get_door_display()} {self.words}"

    @property
    def words(self) -> str:
        """Return what was done, in words; an action of a later version is shown by its name."""
        return ACTIONS.get(self.action, self.action)


class PersonalValues(models.Model):
    """Values that were typed about a recipient in one change. They go when the recipient is erased; the entry stays."""

    entry = models.OneToOneField(
        Entry, on_delete=models.DO_NOTHING, db_constraint=False, related_name="personal"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
        null=True,
    )
    recipient_id = models.BigIntegerField(db_index=True)
    before = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    after = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    note = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "personal values"

    def __str__(self) -> str:
        return f"Values of recipient {self.recipient_id} in entry {self.entry_id}"
