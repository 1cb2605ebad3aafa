"""Accounts, their limits and how their groups were read."""

from typing import Any

from django.contrib import admin

from accounts.admin.archiving import ArchivedFilter
from accounts.admin.lists import moment_column, pill_column
from accounts.admin.roles import KeptAdmin, RoleAdmin, RoleInline, ViewAdmin
from accounts.admin.widgets import SecretField
from accounts.generics import ModelForm
from accounts.models import Account, GroupSync, Limit
from activity.templatetags.paceline import waiting


class LimitInline(RoleInline[Limit, Account]):
    model = Limit
    list_select_related = ("account",)
    unread = ("account__credentials",)


class AccountForm(ModelForm[Account]):
    """Takes new credentials, and never shows those that are stored."""

    new_credentials = SecretField(
        label="New credentials",
        help_text="A JSON object of what the transport asks for. Leave empty to keep what is stored.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.warming = self.instance.warm_up
        self.also_changed: list[str] = []

    def save(self, commit: bool = True) -> Account:
        if self.cleaned_data["new_credentials"]:
            self.instance.credentials = self.cleaned_data["new_credentials"]
            self.also_changed.append("credentials")
        self.also_changed += self.instance.begin_warm_up_again(unless=self.warming)
        return super().save(commit)


class AccountAdmin(KeptAdmin[Account]):
    """Status is not typed but moved: `delivery` registers these pages, with the moves."""

    form = AccountForm
    page = "accounts:page"
    list_display = ("name", "state", "waiting", "wakes", "owner", "channel", "transport", "profile")
    list_filter = ("status", "channel", "transport", "profile", ArchivedFilter)
    list_select_related = ("owner", "status_by")
    unread = ("credentials",)
    search_fields = ("name", "^own_address", "^owner__username")
    autocomplete_fields = ("owner",)
    settled_when_made = ("owner", "channel", "transport")
    inlines = (LimitInline,)
    readonly_fields = (
        "state",
        "status_reason",
        "status_changed_at",
        "status_by",
        "has_credentials",
        "warmup_clean_days",
        "warmup_counted_on",
        "wake_at",
        "waiting",
        "waiting_until",
        "held_until",
        "slow_factor",
        "clean_sends",
        "fence",
        "session_at",
        "first_contacts_until",
        "public_id",
        "reports_to",
        "reports_tried_at",
        "created_at",
        "archived_at",
    )
    fieldsets = (
        (None, {"fields": ("owner", "name", "channel", "transport", "profile", "zone", "own_address")}),
        (
            "Status",
            {
                "fields": ("state", "status_reason", "status_changed_at", "status_by"),
                "description": "Moved by pairing, by what the service answers, and by a person's pause.",
            },
        ),
        (
            "Credentials",
            {
                "fields": ("has_credentials", "new_credentials"),
                "description": "Kept encrypted. They can be replaced here, and read nowhere.",
            },
        ),
        (
            "Pace",
            {
                "fields": ("group_concurrency", ("warmup_start", "warmup_step", "warmup_ceiling")),
                "description": "The profile says how fast it sends; limits below may only make it stricter. "
                "Warm-up raises the daily cap after each day without trouble. With another start or step, or a "
                "profile that has another, it begins again at its first day.",
            },
        ),
        (
            "Service",
            {
                "classes": ("collapse",),
                "fields": (
                    ("session_at", "first_contacts_until"),
                    ("public_id", "reports_to", "reports_tried_at"),
                ),
                "description": "What its service last said, and whether it knows where to report.",
            },
        ),
        (
            "Engine",
            {
                "classes": ("collapse",),
                "fields": (
                    ("wake_at", "waiting", "waiting_until"),
                    ("slow_factor", "clean_sends", "held_until"),
                    ("warmup_clean_days", "warmup_counted_on"),
                    "fence",
                ),
                "description": "Written while sending, for the eye only.",
            },
        ),
        ("Dates", {"fields": ("created_at", "archived_at")}),
    )

    state = pill_column("status", "Status")
    wakes = moment_column("wake_at", "Wakes")

    @admin.display(description="Waiting for")
    def waiting(self, account: Account) -> str:
        return waiting(account.waiting_for) or "-"

    @admin.display(description="Stored", boolean=True)
    def has_credentials(self, account: Account) -> bool:
        return Account.objects.filter(pk=account.pk).exclude(credentials={}).exists()


@admin.register(GroupSync)
class GroupSyncAdmin(ViewAdmin[GroupSync]):
    list_display = ("account", "started", "finished", "seen", "added", "renamed", "left", "error")
    list_select_related = ("account", "by")
    unread = ("account__credentials",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (
        ("account", "by"),
        ("started_at", "progress_at", "finished_at"),
        ("seen", "added", "renamed", "left"),
        "error",
    )

    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")


@admin.register(Limit)
class LimitAdmin(RoleAdmin[Limit]):
    list_display = (
        "account",
        "action",
        "per_minute",
        "per_hour",
        "per_day",
        "gap_min",
        "gap_max",
        "batch_size",
    )
    list_filter = ("action",)
    list_select_related = ("account",)
    unread = ("account__credentials",)
    search_fields = ("account__name", "^account__owner__username")
    autocomplete_fields = ("account",)
    settled_when_made = ("account",)
    ordering = ("-id",)
    fieldsets = (
        (None, {"fields": ("account", "action")}),
        (
            "At most",
            {
                "fields": (("per_minute", "per_hour", "per_day"),),
                "description": "Empty leaves it to the account's profile. The strictest limit wins.",
            },
        ),
        ("Apart", {"fields": (("gap_min", "gap_max"),), "description": "A random gap between two messages."}),
        (
            "Batches",
            {"fields": (("batch_size", "batch_pause"),), "description": "A rest after so many messages."},
        ),
    )
