"""Items: one message each, with its own recipient, text, time and sender."""

from django.db import models
from django.db.models import Q

from accounts.models import Account, Recipient
from delivery.models import RunTarget, TargetContent
from queues.models.queue import Queue


class ItemQuerySet(models.QuerySet["Item"]):
    def of_source(self, queue: Queue, source: str) -> "ItemQuerySet":
        return self.filter(queue=queue, source=source)


class Item(models.Model):
    """One message of a queue. Its progress is that of its target; `states.py` reads it from there."""

    class Priority(models.IntegerChoices):
        LOW = -1, "Low"
        NORMAL = 0, "Normal"
        HIGH = 1, "High"

    class WithdrawnBy(models.TextChoices):
        PERSON = "person", "A person"
        SOURCE = "source", "Its source"

    # No foreign key constraints but that of the queue, as for targets (docs/decisions/0003-indexes.md).
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="items", db_index=False)
    source = models.CharField(max_length=60, help_text="Where it comes from: page, api, file, or a source.")
    own_id = models.CharField(max_length=200, help_text="The name by which its source knows it.")
    target = models.OneToOneField(
        RunTarget, on_delete=models.PROTECT, related_name="item", db_constraint=False
    )
    recipient = models.ForeignKey(
        Recipient, on_delete=models.PROTECT, related_name="items", db_index=False, db_constraint=False
    )
    account = models.ForeignKey(
        Account,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="items",
        db_index=False,
        db_constraint=False,
        help_text="The sender that was asked for. Without one, an account is chosen.",
    )
    priority = models.SmallIntegerField(choices=Priority, default=Priority.NORMAL, db_default=0)
    planned_at = models.DateTimeField(
        null=True, blank=True, help_text="The time that was asked for; it is sent no sooner."
    )
    moved_why = models.CharField(
        max_length=300, blank=True, default="", db_default="", help_text="Why it is sent later than that."
    )
    given = models.CharField(
        max_length=64, editable=False, help_text="The fingerprint of what its source gave last."
    )
    late_change = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text="Why the newest change of its source was not taken.",
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_by = models.CharField(max_length=10, choices=WithdrawnBy, blank=True, default="", db_default="")
    told = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The fingerprint of what was written back to its source.",
    )
    added_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    objects = ItemQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "source", "own_id"], name="item_once_per_source"),
            models.CheckConstraint(condition=~Q(own_id="") & ~Q(source=""), name="item_has_an_own_id"),
            models.CheckConstraint(condition=Q(priority__in=[-1, 0, 1]), name="item_priority_known"),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True, withdrawn_by="")
                | Q(withdrawn_at__isnull=False, withdrawn_by__in=["person", "source"]),
                name="item_withdrawn_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["queue", "-id"], name="item_newest")]

    def __str__(self) -> str:
        return f"Item {self.own_id} for {self.recipient}"

    @property
    def content(self) -> TargetContent:
        """Return what it says."""
        return self.target.content

    @property
    def words(self) -> str:
        """Return the first words of what it says, for lists."""
        content = self.content
        texts = [content.subject, *(str(part.get("text", "")) for part in content.parts or ())]
        return next((text for text in texts if text), "The text of the queue")
