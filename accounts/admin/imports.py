"""Administration of imported files, and of each row found in them."""

from django.contrib import admin

from accounts.admin.lists import list_link, moment_column
from accounts.admin.roles import ViewAdmin
from accounts.models import Import, ImportRow


@admin.register(Import)
class ImportAdmin(ViewAdmin[Import]):
    """A list of imports. They are started and confirmed on the operator's pages."""

    page = "recipients:import_job"
    list_display = ("filename", "owner", "channel", "status", "moment", "found")
    list_filter = ("status", "channel")
    list_select_related = ("owner", "made_by", "account")
    unread = ("account__credentials",)
    fields = (
        "owner",
        "made_by",
        "filename",
        "channel",
        "region",
        "header",
        "on_existing",
        "account",
        "tags",
        "status",
        "problem",
        "counts",
        "found",
        "created_at",
        "finished_at",
    )
    readonly_fields = ("found",)

    moment = moment_column("created_at", "Uploaded")

    @admin.display(description="Rows")
    def found(self, job: Import) -> str:
        return list_link(ImportRow, "Show", job__id__exact=job.pk)


@admin.register(ImportRow)
class ImportRowAdmin(ViewAdmin[ImportRow]):
    list_display = ("number", "job", "written", "address", "name", "problem", "outcome")
    list_filter = ("outcome",)
    list_select_related = ("job",)
    ordering = ("-job_id", "number")
    fields = (
        "job",
        "number",
        "written",
        "address",
        "kind",
        "name",
        "fields",
        "tags",
        "problem",
        "twin",
        "outcome",
    )
