"""Sources of a queue: a table at another service, what was read from it, and its rows."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.encryption import EncryptedJSONField
from queues.models.item import Item
from queues.models.queue import Queue


class Source(models.Model):
    """A table whose rows become items of a queue, and which is told what became of them."""

    class Kind(models.TextChoices):
        NOTION = "notion", "Notion"
        SHEET = "sheet", "Google Sheets"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sources")
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="sources")
    kind = models.CharField(max_length=10, choices=Kind)
    title = models.CharField(max_length=200, help_text="The name of the table at its service.")
    # Its items are known by it, so that a table that is added again sends nothing twice.
    key = models.CharField(max_length=60, editable=False)
    address = models.CharField(max_length=500)
    place = models.JSONField(editable=False, help_text="The ids of the table at its service.")
    credentials = EncryptedJSONField(editable=False)
    mapping = models.JSONField(
        default=dict, editable=False, help_text="What its columns mean, and which ones are written."
    )
    every_minutes = models.PositiveSmallIntegerField(default=5)
    created_at = models.DateTimeField(auto_now_add=True)

    switched_off_at = models.DateTimeField(null=True, blank=True, editable=False)
    stopped_at = models.DateTimeField(null=True, blank=True, editable=False)
    stopped_why = models.CharField(max_length=500, blank=True, editable=False)
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    trouble = models.CharField(max_length=500, blank=True, editable=False, help_text="The last failure.")

    next_read_at = models.DateTimeField(null=True, blank=True, editable=False)
    next_tell_at = models.DateTimeField(null=True, blank=True, editable=False)
    retry_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Nothing is asked before."
    )
    # The rows that are missing are withdrawn without asking a person, up to this number.
    missing = models.PositiveIntegerField(default=0, editable=False)
    busy_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Until then a worker has it."
    )
    lease = models.PositiveIntegerField(default=0, editable=False, help_text="The number of that work.")
    served_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="source_once"),
            models.CheckConstraint(condition=Q(kind__in=["notion", "sheet"]), name="source_kind_known"),
            models.CheckConstraint(condition=Q(every_minutes__range=(1, 1440)), name="source_interval"),
        ]
        indexes = [
            models.Index(fields=["queue"], name="source_by_queue"),
        ]

    def __str__(self) -> str:
        return self.title


class SourceRead(models.Model):
    """One reading of a whole table. It may take several portions, and be interrupted between them."""

    class Outcome(models.TextChoices):
        READING = "reading", "In progress"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="reads", db_index=False)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.READING)
    cursor = models.JSONField(default=dict, help_text="Where the next portion begins.")
    counts = models.JSONField(default=dict)
    why = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=["reading", "done", "failed"]), name="source_read_outcome_known"
            ),
            models.UniqueConstraint(
                fields=["source"], condition=Q(outcome="reading"), name="source_read_one_at_a_time"
            ),
        ]
        indexes = [models.Index(fields=["source", "-id"], name="source_read_newest")]

    def __str__(self) -> str:
        return f"Read of {self.source} at {self.started_at:%Y-%m-%d %H:%M}"


class SourceRow(models.Model):
    """A row of a table as it was read last. Rows without an own id, or with that of another row, have an empty one."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="rows", db_index=False)
    own_id = models.CharField(max_length=200, blank=True)
    place = models.CharField(max_length=100, help_text="The page, or the number of the row.")
    item = models.ForeignKey(
        Item, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_constraint=False
    )
    digest = models.CharField(max_length=64, blank=True, help_text="The fingerprint of what was read.")
    seen_in = models.BigIntegerField(default=0, help_text="The last read that found it.")
    missing_since = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=500, blank=True, help_text="Why it was not taken.")
    unwritten = models.CharField(
        max_length=500, blank=True, help_text="Why its service did not take what was written."
    )
    shown = models.JSONField(default=dict, help_text="What its written cells show, as far as is known.")
    due = models.BooleanField(default=False, help_text="It shows something else than it should.")
    repairs = models.PositiveSmallIntegerField(
        default=0, help_text="How often in a row it was found changed after it was written."
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "own_id"], condition=~Q(own_id=""), name="source_row_once"
            ),
            models.UniqueConstraint(
                fields=["source", "place"], condition=Q(own_id=""), name="source_row_without_id_once"
            ),
        ]
        indexes = [
            models.Index(fields=["item"], name="source_row_item"),
            models.Index(
                fields=["source", "id"], condition=~Q(problem="") | ~Q(unwritten=""), name="source_row_wrong"
            ),
            models.Index(fields=["source", "id"], condition=Q(due=True), name="source_row_due"),
        ]

    def __str__(self) -> str:
        return f"Row {self.own_id or self.place}"
