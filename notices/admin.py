"""Administration of notifications outside: staff see how they go. Addresses and words belong to their person."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.access import user_of
from accounts.admin.lists import moment_column
from accounts.admin.roles import ViewAdmin
from notices import manage
from notices.models import AccountEscalation, Escalation, Follow, Notice, NoticeAddress, Preferences


@admin.register(NoticeAddress)
class NoticeAddressAdmin(ViewAdmin[NoticeAddress]):
    """Addresses are added by their person; staff see how they go, and can delete one."""

    list_display = ("shown", "person", "rhythm", "sent", "failures", "problem", "off")
    list_select_related = ("person",)
    search_fields = ("^person__username",)
    search_help_text = "The person's name."
    ordering = ("-id",)
    actions = ("delete_chosen",)
    fields = (
        ("shown", "person", "way"),
        ("kinds", "rhythm"),
        ("created_at", "confirmed_at", "last_sent_at"),
        ("failures", "failing_since", "retry_at"),
        "problem",
        "switched_off_at",
    )
    unread = ("address",)

    sent = moment_column("last_sent_at", "Last sent")
    off = moment_column("switched_off_at", "Switched off")

    @admin.action(description="Delete the selected addresses")
    def delete_chosen(self, request: HttpRequest, queryset: QuerySet[NoticeAddress]) -> None:
        found = list(queryset)
        for address in found:
            manage.delete(address, by=user_of(request))
        messages.success(request, f"{len(found):,} deleted. Nothing more is sent there.")


@admin.register(Notice)
class NoticeAdmin(ViewAdmin[Notice]):
    """The log. Words are not shown: they may hold a code, and what people wrote."""

    list_display = ("id", "kind", "address", "state", "number", "attempts", "due", "ended", "problem")
    list_select_related = ("address",)
    ordering = ("-id",)
    fields = (
        ("address", "kind", "subject"),
        ("state", "number", "attempts"),
        ("happened_at", "due_at", "ended_at", "give_up_at"),
        "problem",
    )
    unread = ("title", "body", "url", "address__address")

    due = moment_column("due_at", "Due")
    ended = moment_column("ended_at", "Ended")


@admin.register(Preferences)
class PreferencesAdmin(ViewAdmin[Preferences]):
    list_display = ("person", "quiet_from", "quiet_until", "daily_at", "escalate_minutes")
    list_select_related = ("person",)
    ordering = ("-id",)
    fields = ("person", ("quiet_from", "quiet_until"), "daily_at", ("escalate_minutes", "next_people"))


@admin.register(Follow)
class FollowAdmin(ViewAdmin[Follow]):
    list_display = ("person", "owner")
    list_select_related = ("person", "owner")
    ordering = ("-id",)
    fields = ("person", "owner")


@admin.register(Escalation)
class EscalationAdmin(ViewAdmin[Escalation]):
    """Runs that wait for a person, and who was told again."""

    list_display = ("run", "waits", "next")
    list_select_related = ("run",)
    ordering = ("-id",)
    fields = ("run", "since", "told", "next_at")
    unread = ("run__parts",)

    waits = moment_column("since", "Waits since")
    next = moment_column("next_at", "Told again")


@admin.register(AccountEscalation)
class AccountEscalationAdmin(ViewAdmin[AccountEscalation]):
    """Accounts that wait for a person, and who was told again."""

    list_display = ("account", "waits", "next")
    list_select_related = ("account",)
    ordering = ("-id",)
    fields = ("account", "since", "told", "next_at")

    waits = moment_column("since", "Waits since")
    next = moment_column("next_at", "Told again")
