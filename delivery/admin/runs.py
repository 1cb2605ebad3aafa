"""Administration of runs. The engine writes them: people read, and change them only by actions."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.archiving import ArchivedFilter
from accounts.admin.lists import list_link, moment_column
from accounts.admin.roles import ViewAdmin
from activity.models import Attempt
from activity.templatetags.paceline import progress, run_pill
from delivery.admin.run_actions import RunActions
from delivery.models import MediaHandle, Run, RunAccount, RunTarget, choices, shown_as
from delivery.states import RunStatus
from delivery.window import day_names


class StatusFilter(admin.SimpleListFilter):
    """Finds runs by their status as people read it: a run that was canceled after a part was sent is canceled."""

    title = "status"
    parameter_name = "status__exact"

    def lookups(self, *_: Any) -> list[tuple[str, str]]:
        return choices(RunStatus)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:  # noqa: ARG002
        status = self.value()
        return queryset.filter(shown_as(status)) if status in set(RunStatus) else queryset


@admin.register(Run)
class RunAdmin(RunActions, ViewAdmin[Run]):
    """Runs with their live progress, and every action that a person can take."""

    change_list_template = "admin/live_list.html"
    page = "runs:page"

    list_display = ("__str__", "state", "delivered", "owner", "pause_reason", "fired", "finished")
    list_filter = (StatusFilter, "pause_reason", "kind", ArchivedFilter)
    list_select_related = ("owner", "reminder", "changed_by")
    search_fields = ("name", "^owner__username")
    search_help_text = "The reminder's name or its owner."
    ordering = ("-id",)
    fieldsets = (
        (None, {"fields": ("name", "reminder", "owner", "kind", ("due_at", "fired_at"), "key")}),
        (
            "Status",
            {
                "fields": (
                    "state",
                    "bar",
                    "pause_reason",
                    "told",
                    ("opens_at", "closes_at"),
                    ("started_at", "finished_at", "canceled_at"),
                    ("changed_by", "archived_at"),
                ),
                "description": "What happened to it, and what it waits for.",
            },
        ),
        (
            "Progress",
            {
                "fields": (
                    ("total", "pending", "sending"),
                    ("sent", "returned", "failed", "skipped", "left_out", "unconfirmed"),
                    ("sent_before", "returned_before", "failed_before", "unconfirmed_before"),
                    ("targets", "ledger"),
                ),
                "description": "Counted by the engine, and held by the database to add up to the total.",
            },
        ),
        (
            "Frozen copy",
            {
                "fields": (
                    ("action", "subject"),
                    "content",
                    ("zone", "window_start_hour", "window_end_hour", "days"),
                    ("resumes_by_itself", "priority"),
                ),
                "description": "The reminder as it was when fired: editing it does not reach this run.",
            },
        ),
    )

    fired = moment_column("fired_at", "Fired")
    finished = moment_column("finished_at", "Finished")

    @admin.display(description="Status", ordering="status")
    def state(self, run: Run) -> SafeString:
        return run_pill(run)

    @admin.display(description="Delivered")
    def delivered(self, run: Run) -> SafeString:
        return render_to_string("components/_progress.html", progress(run, compact=True))

    @admin.display(description="Progress")
    def bar(self, run: Run) -> SafeString:
        return render_to_string("components/_progress.html", progress(run))

    @admin.display(description="Summary")
    def told(self, run: Run) -> SafeString:
        words = '<span data-run="{}" data-status="{}"><span data-text="summary">{}</span></span>'
        return format_html(words, run.pk, run.shown_status, run.summary or "-")

    @admin.display(description="Targets")
    def targets(self, run: Run) -> SafeString:
        return list_link(RunTarget, "Show", run__id__exact=run.pk)

    @admin.display(description="Ledger")
    def ledger(self, run: Run) -> SafeString:
        return list_link(Attempt, "Show", run__id__exact=run.pk)

    @admin.display(description="Parts")
    def content(self, run: Run) -> SafeString:
        return format_html("<pre>{}</pre>", json.dumps(run.parts, indent=2, ensure_ascii=False))

    @admin.display(description="Send days")
    def days(self, run: Run) -> str:
        return day_names(run.send_days)


@admin.register(RunAccount)
class RunAccountAdmin(ViewAdmin[RunAccount]):
    list_display = ("run", "account", "open")
    list_filter = ("open",)
    list_select_related = ("run", "account")
    unread = ("account__credentials", "run__parts")
    ordering = ("-id",)
    fields = ("run", "account", "open")


@admin.register(MediaHandle)
class MediaHandleAdmin(ViewAdmin[MediaHandle]):
    list_display = ("short_hash", "run", "account", "handle", "uploaded")
    list_select_related = ("run", "account")
    unread = ("account__credentials", "run__parts")
    ordering = ("-id",)
    fields = ("run", "account", "sha256", "handle", "uploaded_at")

    uploaded = moment_column("uploaded_at", "Uploaded")

    @admin.display(description="File")
    def short_hash(self, handle: MediaHandle) -> str:
        return handle.sha256[:12]
