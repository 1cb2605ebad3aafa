"""The import of a file of items."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from queues.models.queue import Queue


class QueueImport(models.Model):
    """One file of items, the meanings of its columns, and the result. Nothing is saved before it is confirmed."""

    class Status(models.TextChoices):
        DRAFT = "draft", "Columns to choose"
        CHECKING = "checking", "Being checked"
        CHECKED = "checked", "Checked"
        SAVING = "saving", "Being saved"
        DONE = "done", "Done"
        FAILED = "failed", "Not readable"

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="imports")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    filename = models.CharField(max_length=255)
    file = models.FileField(upload_to="imports/", max_length=120, blank=True)
    format = models.JSONField(default=dict, help_text="How the file is read.")
    header = models.BooleanField("the first row has the titles", default=True)
    columns = models.JSONField(default=list, help_text="The title and the content of each column.")
    status = models.CharField(max_length=10, choices=Status, default=Status.DRAFT)
    problem = models.CharField(max_length=500, blank=True)
    counts = models.JSONField(
        default=dict, help_text="Numbers of rows by the result of the check or of saving."
    )
    problems = models.JSONField(
        default=list, help_text="The first wrong rows: number, own id or address, reason."
    )
    first = models.JSONField(default=list, help_text="The first rows as they would be saved.")
    saved_rows = models.PositiveIntegerField(default=0, help_text="Rows whose items are saved.")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["draft", "checking", "checked", "saving", "done", "failed"]),
                name="queue_import_status_known",
            )
        ]

    def __str__(self) -> str:
        return self.filename

    @property
    def working(self) -> bool:
        return self.status in {self.Status.CHECKING, self.Status.SAVING}
