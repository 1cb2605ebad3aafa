"""Administration of people, accounts and recipients."""
# ruff: noqa: ARG002 - Django passes more than these need

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin_archive import ArchivedFilter, Archiving
from accounts.admin_generics import ModelForm, UserAdmin
from accounts.admin_lists import list_link, moment_column, pill_column
from accounts.admin_roles import KeptAdmin, RoleAdmin, RoleInline, ViewAdmin, is_staff, is_superuser
from accounts.admin_widgets import SecretField
from accounts.models import (
    Account,
    ConsentChange,
    GroupSync,
    Import,
    ImportRow,
    Limit,
    Recipient,
    Tag,
    TeamMate,
    User,
)
from accounts.recipient_search import matching
from accounts.recipient_states import state_now
from activity.templatetags.paceline import waiting

# Roles come from `accounts/roles.py`; groups of permissions would be a second, silent source of them.
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    """Staff look people up; superusers alone make and change them. Nobody is deleted: history names them."""

    list_display = ("username", "email", "first_name", "last_name", "role", "zone", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("^username", "^email", "^first_name", "^last_name")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "zone", "region")}),
        (
            "Role",
            {
                "fields": ("is_active", "is_staff", "is_superuser"),
                "description": "An operator has none of these but “active”, and sees what is theirs or "
                "shared with them. Staff see and touch everything. Superusers manage people as well.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    @admin.display(description="Role")
    def role(self, user: User) -> str:
        if user.is_superuser:
            return "Superuser"
        return "Staff" if user.is_staff else "Operator"

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        sets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj):
            return sets
        return [(None, {"fields": ("username",)}), *sets[1:]]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


@admin.register(TeamMate)
class TeamMateAdmin(RoleAdmin[TeamMate]):
    list_display = ("mate", "owner", "access")
    list_filter = ("access",)
    list_select_related = ("owner", "mate")
    search_fields = ("^owner__username", "^mate__username")
    autocomplete_fields = ("owner", "mate")
    ordering = ("-id",)
    fieldsets = (
        (
            None,
            {
                "fields": ("owner", "mate", "access"),
                "description": "The mate sees what belongs to the owner, and works on it too as an operator.",
            },
        ),
    )


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

    def save(self, commit: bool = True) -> Account:
        if self.cleaned_data["new_credentials"]:
            self.instance.credentials = self.cleaned_data["new_credentials"]
        return super().save(commit)


@admin.register(Account)
class AccountAdmin(Archiving, KeptAdmin[Account]):
    """Status is not typed but moved: those moves belong among the `actions`."""

    form = AccountForm
    list_display = ("name", "owner", "channel", "transport", "state", "waiting", "wakes", "profile")
    list_filter = ("status", "channel", "transport", "profile", ArchivedFilter)
    list_select_related = ("owner", "status_by")
    unread = ("credentials",)
    search_fields = ("name", "^own_address", "^owner__username")
    autocomplete_fields = ("owner",)
    settled_when_made = ("owner", "channel", "transport")
    inlines = (LimitInline,)
    actions: tuple[str, ...] = ("archive", "unarchive")
    in_use = "still active: pause it first"
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
                "Warm-up raises the daily cap after each day without trouble.",
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

    def archivable(self, rows: QuerySet[Account]) -> QuerySet[Account]:
        return rows.exclude(status=Account.Status.ACTIVE)


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


@admin.register(Tag)
class TagAdmin(RoleAdmin[Tag]):
    list_display = ("name", "owner", "recipients")
    list_select_related = ("owner",)
    search_fields = ("name", "^owner__username")
    autocomplete_fields = ("owner",)
    settled_when_made = ("owner",)
    fields = ("owner", "name")

    @admin.display(description="Recipients")
    def recipients(self, tag: Tag) -> str:
        return list_link(Recipient, "Show", tags__id__exact=tag.pk)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Deleting a tag only unties it. Django would list every tie, which can be a million lines."""
        return [str(tag) for tag in objs], {"tags": len(objs)}, set(), []


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("opted_out", "Opted out"),
            ("blocked", "Blocked"),
            ("cooling_down", "Cooling down"),
            ("not_interested", "Not interested"),
            ("converted", "Converted"),
            ("reachable", "Reachable"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state_now=self.value()) if self.value() else queryset


@admin.register(Recipient)
class RecipientAdmin(Archiving, RoleAdmin[Recipient]):
    """Consent and cooldowns are not typed: they change with what a recipient writes."""

    list_display = ("__str__", "address", "owner", "channel", "kind", "state", "account", "heard")
    list_filter = ("channel", "kind", StateFilter, ArchivedFilter)
    list_select_related = ("owner", "account")
    unread = ("account__credentials",)
    # Names the box to Django; `get_search_results` does the search.
    search_fields = ("name", "address")
    search_help_text = "Beginnings of words in the name and the address."
    autocomplete_fields = ("owner", "account", "tags")
    settled_when_made = ("owner", "channel")
    ordering = ("-id",)
    actions = ("archive", "unarchive")
    readonly_fields = (
        "kind",
        "state",
        "opted_out_at",
        "blocked_at",
        "converted_at",
        "not_interested_at",
        "attempts",
        "attempts_reset_at",
        "cooldown_until",
        "last_inbound_at",
        "consent",
        "created_at",
        "archived_at",
    )
    fieldsets = (
        (None, {"fields": ("owner", "channel", "address", "kind", "name", "account", "tags")}),
        (
            "Variables",
            {"fields": ("fields",), "description": "Usable in messages as {{ field }}, beside {{ name }}."},
        ),
        (
            "Consent",
            {
                "fields": ("state", "opted_out_at", "blocked_at", "consent"),
                "description": "Nothing is sent to who opted out, until they opt in again.",
            },
        ),
        (
            "Conversation",
            {
                "fields": (
                    "last_inbound_at",
                    ("attempts", "attempts_reset_at"),
                    ("cooldown_until", "not_interested_at"),
                    "converted_at",
                ),
                "description": "After three follow-ups without a reply comes a cooldown; a reply lifts it.",
            },
        ),
        ("Dates", {"fields": ("created_at", "archived_at")}),
    )

    state = pill_column("state_now", "State")
    heard = moment_column("last_inbound_at", "Last reply")

    @admin.display(description="Consent changes")
    def consent(self, recipient: Recipient) -> str:
        return list_link(ConsentChange, "Show", recipient__id__exact=recipient.pk)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Recipient]:
        return super().get_queryset(request).annotate(state_now=state_now())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Recipient], search_term: str
    ) -> tuple[QuerySet[Recipient], bool]:
        return matching(queryset, search_term), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "reminders__id__exact" or super().lookup_allowed(lookup, value, request)


@admin.register(ConsentChange)
class ConsentChangeAdmin(ViewAdmin[ConsentChange]):
    list_display = ("recipient", "move", "moment", "how", "by")
    list_filter = ("move",)
    list_select_related = ("recipient", "by")
    ordering = ("-id",)
    fields = ("recipient", "move", "at", "how", "by")

    moment = moment_column("at", "When")


@admin.register(Import)
class ImportAdmin(ViewAdmin[Import]):
    """Imports are made and confirmed on the operator's pages."""

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
