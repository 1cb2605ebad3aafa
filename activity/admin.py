"""Administration of what happened. Every page here is read-only."""
# ruff: noqa: ARG002 - Django passes more than these need

from django.contrib import admin
from django.http import HttpRequest

from accounts.admin.lists import moment_column, pill_column
from accounts.admin.roles import RoleAdmin, ViewAdmin
from activity.models import AccountDay, Attempt, Inbound, Notification, NotificationOutbox, PushSubscription
from audit.models import Entry, PersonalValues
from delivery.admin.rows import Ordering, RunRowsAdmin, WithinRunFilter
from delivery.transports.networks.addresses import BadWebAddressError, web_address


class OutcomeFilter(WithinRunFilter):
    title = "outcome"
    parameter_name = field = "outcome"
    options = Attempt.Outcome.choices


@admin.register(Attempt)
class AttemptAdmin(RunRowsAdmin[Attempt]):
    """The ledger. Limits are counted from it, so rows are added and never changed."""

    list_display = ("id", "state", "began", "account", "run", "action", "part", "attempt", "took", "error")
    list_filter = (OutcomeFilter,)
    list_select_related = ("owner", "account", "run", "target__recipient")
    unread = ("account__credentials", "run__parts")
    fieldsets = (
        (
            None,
            {"fields": ("at", "owner", "account", "run", "target", "address", "action", ("part", "attempt"))},
        ),
        ("Outcome", {"fields": ("state", "provider_id", "error", "took")}),
    )

    began = moment_column("at", "Began")
    state = pill_column("outcome", "Outcome")

    @admin.display(description="Took")
    def took(self, attempt: Attempt) -> str:
        return f"{attempt.took_ms:,} ms"

    def get_ordering(self, request: HttpRequest) -> Ordering:
        if "account__id__exact" in request.GET:
            return ("-action", "-at", "-id")  # the index `attempt_limits`, backwards
        return super().get_ordering(request)


@admin.register(AccountDay)
class AccountDayAdmin(ViewAdmin[AccountDay]):
    """The results of the messages of each account, day by day; its health is judged from it."""

    list_display = ("account", "day", "sent", "failed", "returned", "complained", "replies", "opt_outs")
    list_select_related = ("account",)
    unread = ("account__credentials",)
    ordering = ("-id",)
    sortable_by = ()
    fields = (("account", "day"), ("sent", "failed"), ("returned", "complained"), ("replies", "opt_outs"))


@admin.register(Inbound)
class InboundAdmin(ViewAdmin[Inbound]):
    list_display = ("id", "arrived", "kind", "account", "recipient", "excerpt", "handled")
    list_select_related = ("account", "recipient", "target__run", "target__recipient")
    unread = ("account__credentials", "target__run__parts")
    ordering = ("-id",)
    sortable_by = ()
    fields = (
        ("account", "event_id", "kind"),
        ("sender", "chat", "recipient"),
        ("direct", "waits_for"),
        ("provider_id", "target", "state"),
        "text",
        ("at", "until", "created_at", "handled_at"),
    )

    arrived = moment_column("at", "Arrived")
    handled = moment_column("handled_at", "Handled")

    @admin.display(description="Text")
    def excerpt(self, inbound: Inbound) -> str:
        return inbound.text[:60]


@admin.register(Entry)
class EntryAdmin(ViewAdmin[Entry]):
    """The audit log. Its rows are added and never changed."""

    list_display = ("id", "made", "actor_name", "words", "thing_name", "owner", "door", "via", "address")
    list_filter = ("door",)
    list_select_related = ("owner", "actor")
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("=actor_name",)
    search_help_text = "The name of a person."
    fields = (
        ("at", "owner"),
        ("actor", "actor_name"),
        ("door", "via", "address"),
        ("action", "thing_type", "thing_id", "thing_name"),
        ("before", "after"),
        "note",
    )

    made = moment_column("at", "When")

    @admin.display(description="What")
    def words(self, entry: Entry) -> str:
        return entry.words


@admin.register(PersonalValues)
class PersonalValuesAdmin(ViewAdmin[PersonalValues]):
    """Values that were typed about recipients. They go when a recipient is erased."""

    list_display = ("entry", "recipient_id", "owner")
    list_select_related = ("entry", "owner")
    ordering = ("-id",)
    sortable_by = ()
    fields = (("entry", "recipient_id", "owner"), ("before", "after"), "note")


@admin.register(Notification)
class NotificationAdmin(ViewAdmin[Notification]):
    list_display = ("title", "owner", "kind", "body", "made", "read")
    list_filter = ("kind",)
    list_select_related = ("owner", "run")
    unread = ("run__parts",)
    search_fields = ("^owner__username",)
    search_help_text = "The owner's name."
    ordering = ("-id",)
    fields = ("owner", "kind", "title", "body", "url", "run", "key", "created_at", "read_at")

    made = moment_column("created_at", "Made")
    read = moment_column("read_at", "Read")


@admin.register(NotificationOutbox)
class NotificationOutboxAdmin(ViewAdmin[NotificationOutbox]):
    """Notifications that no worker has passed on yet: empty within seconds."""

    list_display = ("notification",)
    list_select_related = ("notification",)
    ordering = ("-notification",)
    fields = ("notification",)


@admin.register(PushSubscription)
class PushSubscriptionAdmin(RoleAdmin[PushSubscription]):
    """Subscribed browsers. A browser subscribes by itself and its keys stay hidden. A subscription can be deleted."""

    list_display = ("user", "service", "made")
    list_select_related = ("user",)
    search_fields = ("^user__username",)
    ordering = ("-id",)
    fields = readonly_fields = ("user", "service", "created_at")

    made = moment_column("created_at", "Subscribed")

    @admin.display(description="Push service")
    def service(self, subscription: PushSubscription) -> str:
        try:
            return web_address(subscription.endpoint).host
        except BadWebAddressError:
            return ""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
