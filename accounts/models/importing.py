"""The import of a file of recipients."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.models.account import Account, Channel
from accounts.regions import validate_region


class Import(models.Model):
    """One file, the meanings of its columns, and the result. Nothing is saved before it is confirmed."""

    class Status(models.TextChoices):
        DRAFT = "draft", "Columns to choose"
        CHECKING = "checking", "Being checked"
        CHECKED = "checked", "Checked"
        SAVING = "saving", "Being saved"
        DONE = "done", "Done"
        FAILED = "failed", "Not readable"

    class OnExisting(models.TextChoices):
        UPDATE = "update", "Update them"
        SKIP = "skip", "Leave them as they are"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    filename = models.CharField(max_length=255)
    file = models.FileField(upload_to="imports/", max_length=120, blank=True)
    format = models.JSONField(default=dict, help_text="How the file is read.")

    channel = models.CharField(max_length=20, choices=Channel, default=Channel.WHATSAPP)
    region = models.CharField(
        "country of local numbers",
        max_length=2,
        blank=True,
        validators=[validate_region],
        help_text="Two letters, such as MY, for numbers without a country code.",
    )
    header = models.BooleanField("the first row has the titles", default=True)
    columns = models.JSONField(default=list, help_text="The title and the content of each column.")
    on_existing = models.CharField(
        "recipients already in the list", max_length=10, choices=OnExisting, default=OnExisting.UPDATE
    )
    account = models.ForeignKey(
        Account, on_delete=models.SET_NULL, null=True, blank=True, verbose_name="reached by", related_name="+"
    )
    tags = ArrayField(models.CharField(max_length=60), default=list, blank=True)

    status = models.CharField(max_length=10, choices=Status, default=Status.DRAFT)
    problem = models.CharField(max_length=500, blank=True)
    counts = models.JSONField(
        default=dict, help_text="Numbers of rows by the result of the check, later by the result of saving."
    )

    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["draft", "checking", "checked", "saving", "done", "failed"]),
                name="import_status_known",
            ),
            models.CheckConstraint(
                condition=Q(on_existing__in=["update", "skip"]), name="import_on_existing_known"
            ),
            models.CheckConstraint(
                condition=Q(channel__in=["whatsapp", "email", "linkedin", "matrix"]),
                name="import_channel_known",
            ),
        ]

    def __str__(self) -> str:
        return self.filename

    @property
    def working(self) -> bool:
        return self.status in {self.Status.CHECKING, self.Status.SAVING}


class ImportRow(models.Model):
    """One row of the file as it was read; kept for the report."""

    class Outcome(models.TextChoices):
        NONE = "", "Not saved"
        ADDED = "added", "Added"
        UPDATED = "updated", "Updated"
        LEFT = "left", "Left as it was"

    job = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows", db_index=False)
    number = models.PositiveIntegerField(help_text="The row number in the spreadsheet.")
    written = models.CharField(max_length=255, blank=True)
    address = models.CharField(max_length=255, blank=True)
    kind = models.CharField(max_length=10, blank=True)
    name = models.CharField(max_length=200, blank=True)
    fields = models.JSONField(default=dict)
    tags = ArrayField(models.CharField(max_length=60), default=list)
    problem = models.CharField(max_length=500, blank=True)
    twin = models.PositiveIntegerField(null=True, help_text="The earlier row with the same address.")
    known = models.BooleanField(default=False, db_default=False, help_text="The recipient exists already.")
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True, default="", db_default="")

    saved_as = models.BigIntegerField(null=True, editable=False, help_text="The id of the saved recipient.")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="import_row_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=["", "added", "updated", "left"]), name="import_row_outcome_known"
            ),
        ]

    def __str__(self) -> str:
        return f"Row {self.number} of {self.job}"
