"""Administration of accounts, their limits and the readings of their groups."""

from typing import Any

from django.contrib import admin

from accounts.admin.archiving import ArchivedFilter
from accounts.admin.lists import moment_column, pill_column
from accounts.admin.roles import KeptAdmin, RoleAdmin, RoleInline, ViewAdmin
from accounts.admin.widgets import SecretField
from accounts.generics import ModelForm
from accounts.models import (
    Account,
    AddressAlias,
    Contact,
    GroupSync,
    HealthChange,
    Limit,
    OwnAddress,
    OwnLimits,
    RefusedReports,
    SenderDomain,
    TestMessage,
)
from accounts.zones import ChecksZone


class LimitInline(RoleInline[Limit, Account]):
    model = Limit
    list_select_related = ("account",)
    unread = ("account__credentials",)


class AccountForm(ChecksZone, ModelForm[Account]):
    """A form that takes new credentials and never shows the stored ones."""

    new_credentials = SecretField(
        label="New credentials",
        help_text="A JSON object with the fields of the transport. Leave empty to keep the stored credentials.",
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
    """Pages of accounts. Nobody types a status: `delivery` registers these pages with the actions that change it."""

    form = AccountForm
    page = "accounts:page"
    list_display = ("name", "state", "waiting", "wakes", "owner", "channel", "transport", "profile")
    list_filter = ("status", "health", "channel", "transport", "profile", ArchivedFilter)
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
        "waiting_detail",
        "held_until",
        "health",
        "health_reason",
        "health_until",
        "slow_factor",
        "clean_sends",
        "trouble_kind",
        "trouble",
        "trouble_since",
        "trouble_count",
        "fence",
        "session_at",
        "first_contacts_until",
        "first_contacts_guessed",
        "service_per_24_hours",
        "public_id",
        "reports_to",
        "reports_tried_at",
        "created_at",
        "archived_at",
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "owner",
                    "name",
                    "channel",
                    "transport",
                    ("profile", "as_before"),
                    "zone",
                    "own_address",
                )
            },
        ),
        (
            "Status",
            {
                "fields": ("state", "status_reason", "status_changed_at", "status_by"),
                "description": "Changed by pairing, by the answers of the service, and by people who pause or resume.",
            },
        ),
        (
            "Credentials",
            {
                "fields": ("has_credentials", "new_credentials"),
                "description": "Stored encrypted and not shown again. You can replace them here.",
            },
        ),
        (
            "Pace",
            {
                "fields": (
                    "group_concurrency",
                    "shows_typing",
                    ("work_start_hour", "work_end_hour"),
                    "work_days",
                    ("warmup_start", "warmup_step", "warmup_ceiling"),
                ),
                "description": "The profile sets the speed; the limits below replace its values. Warm-up raises the "
                "daily limit after each day without errors. Changing the start, the step or the profile "
                "restarts the warm-up.",
            },
        ),
        (
            "Service",
            {
                "classes": ("collapse",),
                "fields": (
                    ("session_at", "first_contacts_until", "first_contacts_guessed"),
                    "service_per_24_hours",
                    ("public_id", "reports_to", "reports_tried_at"),
                ),
                "description": "The last report of the service, and the address that it reports to.",
            },
        ),
        (
            "Engine",
            {
                "classes": ("collapse",),
                "fields": (
                    ("wake_at", "waiting", "waiting_until"),
                    "waiting_detail",
                    ("slow_factor", "clean_sends", "held_until"),
                    ("health", "health_until", "health_reason"),
                    ("trouble_kind", "trouble", "trouble_since", "trouble_count"),
                    ("warmup_clean_days", "warmup_counted_on"),
                    "fence",
                ),
                "description": "Written by the engine while it sends. Read only.",
            },
        ),
        ("Dates", {"fields": ("created_at", "archived_at")}),
    )

    state = pill_column("status", "Status")
    wakes = moment_column("wake_at", "Wakes")

    @admin.display(description="Waiting for")
    def waiting(self, account: Account) -> str:
        """Return the engine's own word; the registered page replaces it with a sentence."""
        return account.waiting_for or "-"

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


@admin.register(AddressAlias)
class AddressAliasAdmin(ViewAdmin[AddressAlias]):
    list_display = ("account", "alias", "address", "source", "learnt")
    list_select_related = ("account",)
    unread = ("account__credentials",)
    search_fields = ("^alias", "^address")
    ordering = ("-id",)
    sortable_by = ()
    fields = ("account", ("alias", "address"), ("source", "learnt_at"))

    learnt = moment_column("learnt_at", "Learned")


@admin.register(Contact)
class ContactAdmin(ViewAdmin[Contact]):
    """Shows when an account and a recipient last talked, and whether the account is in the group."""

    list_display = ("recipient", "account", "talked", "member")
    list_select_related = ("account", "recipient")
    unread = ("account__credentials",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (("recipient", "account"), ("talked_at", "member_at"))

    talked = moment_column("talked_at", "Talked")
    member = moment_column("member_at", "Seen as a member")


@admin.register(HealthChange)
class HealthChangeAdmin(ViewAdmin[HealthChange]):
    """The steps taken for the health of accounts: slowed down, paused, lifted, and by whom."""

    list_display = ("account", "move", "moment", "why", "by")
    list_select_related = ("account", "by")
    unread = ("account__credentials",)
    list_filter = ("move",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (("account", "move"), ("at", "by"), "why")

    moment = moment_column("at", "When")


@admin.register(RefusedReports)
class RefusedReportsAdmin(ViewAdmin[RefusedReports]):
    list_display = ("account", "count", "last", "reason")
    list_select_related = ("account",)
    unread = ("account__credentials",)
    ordering = ("-account",)
    sortable_by = ()
    fields = ("account", "count", ("first_at", "last_at"), "reason")

    last = moment_column("last_at", "Last one")


@admin.register(SenderDomain)
class SenderDomainAdmin(ViewAdmin[SenderDomain]):
    list_display = ("domain", "account", "checked", "trouble")
    list_select_related = ("account",)
    unread = ("account__credentials",)
    search_fields = ("^domain",)
    ordering = ("-account",)
    sortable_by = ()
    fields = ("account", "domain", "findings", "trouble", "checked_at")

    checked = moment_column("checked_at", "Checked")


@admin.register(OwnLimits)
class OwnLimitsAdmin(ViewAdmin[OwnLimits]):
    """Shows the last answers of services about their own limits."""

    list_display = ("account", "new_chats", "new_chats_used", "people_per_24_hours", "read", "trouble")
    list_select_related = ("account",)
    unread = ("account__credentials",)
    ordering = ("-account",)
    sortable_by = ()
    fields = (
        "account",
        ("new_chats", "new_chats_used", "new_chats_until"),
        "people_per_24_hours",
        "said",
        "trouble",
        ("read_at", "tried_at"),
    )

    read = moment_column("read_at", "Read")


@admin.register(Limit)
class LimitAdmin(RoleAdmin[Limit]):
    list_display = (
        "account",
        "action",
        "per_minute",
        "per_hour",
        "per_day",
        "per_24_hours",
        "per_7_days",
        "per_30_days",
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
            "Maximum",
            {
                "fields": (
                    ("per_minute", "per_hour", "per_day"),
                    ("per_24_hours", "per_7_days", "per_30_days"),
                    ("new_per_day", "new_per_week"),
                ),
                "description": "Leave empty to use the account's profile. All limits apply; the strictest one decides.",
            },
        ),
        ("Gap", {"fields": (("gap_min", "gap_max"),), "description": "A random gap between messages."}),
        (
            "Batches",
            {"fields": (("batch_size", "batch_pause"),), "description": "A break after each batch."},
        ),
    )


@admin.register(OwnAddress)
class OwnAddressAdmin(ViewAdmin[OwnAddress]):
    """A list of the people who may send tests, and their addresses. Only a code confirms an address."""

    list_display = ("address", "person", "account", "confirmed")
    list_select_related = ("account", "person")
    unread = ("account__credentials",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (("account", "person"), "address", ("confirmed_at", "code_at", "tries"))

    confirmed = moment_column("confirmed_at", "Confirmed")


@admin.register(TestMessage)
class TestMessageAdmin(ViewAdmin[TestMessage]):
    list_display = ("address", "kind", "person", "account", "asked", "begun")
    list_filter = ("kind",)
    list_select_related = ("account", "person")
    unread = ("account__credentials",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (("account", "person"), ("kind", "address"), ("asked_at", "begun_at"))

    asked = moment_column("asked_at", "Asked")
    begun = moment_column("begun_at", "Begun")
