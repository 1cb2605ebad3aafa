"""Administration of runs and their targets. The engine writes them: people look, and act by actions."""

import json

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin import AccountAdmin
from accounts.admin_archive import ArchivedFilter, Archiving
from accounts.admin_lists import list_link, moment_column, pill_column
from accounts.admin_roles import ViewAdmin
from accounts.models import Account
from activity.models import Attempt
from activity.templatetags.paceline import account_pill, progress, run_pill
from delivery.admin_moves import AccountMoves, RunMoves
from delivery.admin_rows import RunRowsAdmin, WithinRunFilter
from delivery.models import MediaHandle, Run, RunAccount, RunTarget, choices
from delivery.send_days import day_names
from delivery.states import TargetStatus


@admin.register(Run)
class RunAdmin(RunMoves, Archiving, ViewAdmin[Run]):
    """Runs as they go, live, with all that a person can do to them."""

    change_list_template = "admin/live_list.html"

    list_display = ("__str__", "state", "delivered", "owner", "pause_reason", "fired", "finished")
    list_filter = ("status", "pause_reason", "kind", ArchivedFilter)
    list_select_related = ("owner", "reminder", "changed_by")
    search_fields = ("name", "^owner__username")
    search_help_text = "The reminder's name or its owner."
    ordering = ("-id",)
    actions = ("unarchive",)
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
                    ("sent", "failed", "skipped", "left_out", "unconfirmed"),
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
        return format_html(words, run.pk, run.status, run.summary or "-")

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


# The account's pages belong to `accounts`; what moves an account belongs here.
admin.site.unregister(Account)


@admin.register(Account)
class LiveAccountAdmin(AccountMoves, AccountAdmin):
    """Accounts with their state, live, and the moves that a person can make."""

    change_list_template = "admin/live_list.html"
    actions = ("pause_accounts", "resume_accounts", *AccountAdmin.actions)

    @admin.display(description="Status", ordering="status")
    def state(self, account: Account) -> SafeString:
        return account_pill(account)


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
