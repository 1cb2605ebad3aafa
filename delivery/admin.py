"""Administration of runs and their targets. The engine writes them: people look, and act by actions."""

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_archive import ArchivedFilter, Archiving
from accounts.admin_lists import list_link, moment_column, pill_column
from accounts.admin_roles import ViewAdmin
from activity.models import Attempt
from delivery.admin_rows import RunRowsAdmin, WithinRunFilter
from delivery.models import MediaHandle, Run, RunAccount, RunTarget, choices
from delivery.send_days import day_names
from delivery.states import SETTLED_RUN, TargetStatus


@admin.register(Run)
class RunAdmin(Archiving, ViewAdmin[Run]):
    """Resume, pause, cancel and retry are moves of a run's life: they belong among the `actions`."""

    list_display = ("__str__", "owner", "state", "pause_reason", "delivered", "fired", "finished")
    list_filter = ("status", "pause_reason", "kind", ArchivedFilter)
    list_select_related = ("owner", "reminder", "changed_by")
    search_fields = ("name", "^owner__username")
    search_help_text = "The reminder's name or its owner."
    ordering = ("-id",)
    actions = ("archive", "unarchive")
    in_use = "not settled yet: finish or cancel it first"
    fieldsets = (
        (None, {"fields": ("name", "reminder", "owner", "kind", ("due_at", "fired_at"), "key")}),
        (
            "Status",
            {
                "fields": (
                    "state",
                    "pause_reason",
                    "summary",
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
                    ("sent", "failed", "skipped", "unconfirmed"),
                    ("sent_before", "failed_before"),
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

    state = pill_column("status", "Status")
    fired = moment_column("fired_at", "Fired")
    finished = moment_column("finished_at", "Finished")

    @admin.display(description="Delivered")
    def delivered(self, run: Run) -> str:
        return f"{run.sent:,} of {run.total:,}"

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

    def archivable(self, rows: QuerySet[Run]) -> QuerySet[Run]:
        return rows.filter(status__in=SETTLED_RUN)


@admin.register(RunAccount)
class RunAccountAdmin(ViewAdmin[RunAccount]):
    list_display = ("run", "account", "open")
    list_filter = ("open",)
    list_select_related = ("run", "account")
    unread = ("account__credentials", "run__parts")
    ordering = ("-id",)
    fields = ("run", "account", "open")


class StatusFilter(WithinRunFilter):
    title = "status"
    parameter_name = field = "status"
    options = choices(TargetStatus)


@admin.register(RunTarget)
class RunTargetAdmin(RunRowsAdmin[RunTarget]):
    """Marking an unconfirmed target and retrying a failed one belong among the `actions`."""

    list_display = ("id", "state", "recipient", "account", "run", "attempts", "error", "planned", "settled")
    list_filter = (StatusFilter,)
    list_select_related = ("run", "recipient", "account")
    unread = ("account__credentials", "run__parts")
    # The index `target_by_status`.
    ordering_in_a_run = ("status", "id")
    actions = ()
    fieldsets = (
        (None, {"fields": ("run", "recipient", "account", "state", "key", "ledger")}),
        (
            "Sending",
            {
                "fields": (
                    ("not_before", "attempts", "parts_done"),
                    ("claimed_at", "begun_at", "fence"),
                    ("settled_at", "provider_id"),
                    "error",
                ),
                "description": "Once begun, a message may have left: a crash leaves it in doubt.",
            },
        ),
        ("Receipts", {"fields": (("delivered_at", "read_at"),)}),
    )

    state = pill_column("status", "Status")
    planned = moment_column("not_before", "Not before")
    settled = moment_column("settled_at", "Settled")

    @admin.display(description="Ledger")
    def ledger(self, target: RunTarget) -> SafeString:
        return list_link(Attempt, "Show", target__id__exact=target.pk)


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
