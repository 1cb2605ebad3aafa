"""Administration of imported files, and of each row found in them."""

from collections.abc import Iterable

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.actions import MOST_AT_ONCE, Button, Question, RowActions, confirmed
from accounts.admin.lists import list_link, moment_column
from accounts.admin.roles import ViewAdmin
from accounts.imports import stages
from accounts.models import Import, ImportRow, Role, User
from accounts.roles import require_touch


@admin.register(Import)
class ImportAdmin(RowActions, ViewAdmin[Import]):
    """A list of imports. They are uploaded on the operator's pages, and confirmed there or here."""

    actions = ("confirm_imports", "discard_imports")
    refusals = (stages.WrongStageError, PermissionDenied)
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

    def buttons(self, row: Import) -> Iterable[Button]:
        if row.status == Import.Status.CHECKED:
            yield Button(action="confirm_imports", label="Confirm")
            yield Button(action="discard_imports", label="Discard", gives_up=True)

    @admin.action(description="Confirm the selected imports", permissions=["view"])
    def confirm_imports(self, request: HttpRequest, queryset: QuerySet[Import]) -> HttpResponse | None:
        """Ask first, with how many recipients each file adds and changes."""
        if confirmed(request):
            return self.each(request, queryset, _confirm, "Confirmed")
        return self.ask(request, _question("confirm_imports", "Confirm these imports?", "Confirm", queryset))

    @admin.action(description="Discard the selected imports", permissions=["view"])
    def discard_imports(self, request: HttpRequest, queryset: QuerySet[Import]) -> HttpResponse | None:
        if confirmed(request):
            return self.each(request, queryset, _discard, "Discarded")
        return self.ask(request, _question("discard_imports", "Discard these imports?", "Discard", queryset))

    @admin.display(description="Rows")
    def found(self, job: Import) -> str:
        return list_link(ImportRow, "Show", job__id__exact=job.pk)


def _question(action: str, title: str, button: str, chosen: QuerySet[Import]) -> Question:
    return Question(
        action=action,
        title=title,
        sentence="Nothing of a file is saved before it is confirmed. What is discarded has to be uploaded again.",
        button=button,
        rows=[(job, _counts(job)) for job in chosen[:MOST_AT_ONCE]],
        gives_up=action == "discard_imports",
    )


def _counts(job: Import) -> str:
    """Return what a file brings: 40 new, 3 known, 2 with a problem."""
    names = (("new", "new"), ("known", "already in the list"), ("bad", "with a problem"))
    return ", ".join(f"{job.counts[key]:,} {words}" for key, words in names if job.counts.get(key))


def _confirm(job: Import, *, by: User) -> None:
    require_touch(job, by, Role.WRITE)
    stages.confirm(job)


def _discard(job: Import, *, by: User) -> None:
    require_touch(job, by, Role.WRITE)
    stages.discard(job)


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
