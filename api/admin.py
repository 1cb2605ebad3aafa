"""Administration of keys: staff see who has which, and can revoke one. Nobody can read a key or make one here."""

from collections.abc import Iterable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.access import user_of
from accounts.admin.actions import MOST_AT_ONCE, Button, Question, RowActions, confirmed
from accounts.admin.lists import moment_column
from accounts.admin.roles import ViewAdmin
from accounts.models import Delivery, ResultFeed, Webhook
from api import keys
from api.hooks import manage
from api.models import ApiKey, StoredAnswer


@admin.register(ApiKey)
class ApiKeyAdmin(RowActions, ViewAdmin[ApiKey]):
    """Keys are made on their person's own page, where the secret is shown once."""

    list_display = ("name", "person", "shown_prefix", "may", "used", "used_from", "ends", "revoked")
    list_select_related = ("person",)
    search_fields = ("^person__username", "^prefix")
    search_help_text = "The person's name, or the beginning of the key."
    ordering = ("-id",)
    actions = ("revoke",)
    fields = (
        ("name", "person"),
        ("prefix", "scopes"),
        ("created_at", "ends_at", "revoked_at"),
        ("used_at", "used_from"),
    )

    used = moment_column("used_at", "Last used")
    ends = moment_column("ends_at", "Ends")
    revoked = moment_column("revoked_at", "Revoked")

    @admin.display(description="Key")
    def shown_prefix(self, key: ApiKey) -> str:
        return f"paceline_{key.prefix}_…"

    @admin.display(description="May")
    def may(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    def buttons(self, row: ApiKey) -> Iterable[Button]:
        if row.revoked_at is None:
            yield Button(action="revoke", label="Revoke", gives_up=True)

    @admin.action(description="Revoke the selected keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Ask first: a revoked key never works again."""
        working = queryset.filter(revoked_at=None)
        if confirmed(request):
            return self.each(request, working, keys.revoke, "Revoked")
        asked = Question(
            action="revoke",
            title="Revoke these keys?",
            sentence="Programs that use them stop working at once. This cannot be undone.",
            button=f"Revoke ({working.count():,})",
            rows=[(key, str(key.person)) for key in working.select_related("person")[:MOST_AT_ONCE]],
            gives_up=True,
        )
        return self.ask(request, asked)


@admin.register(Webhook)
class WebhookAdmin(ViewAdmin[Webhook]):
    """Webhooks are made by their owner; staff see how they go, and can switch one off."""

    list_display = ("url", "owner", "failures", "failing", "off")
    list_select_related = ("owner",)
    search_fields = ("^owner__username",)
    ordering = ("-id",)
    actions = ("switch_off",)
    fields = (
        ("url", "owner"),
        "events",
        ("created_at", "served_at"),
        ("failures", "failing_since", "retry_at"),
        ("switched_off_at", "switched_off_reason"),
    )
    unread = ("secrets",)

    failing = moment_column("failing_since", "Failing since")
    off = moment_column("switched_off_at", "Switched off")

    @admin.action(description="Switch the selected webhooks off")
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        found = list(queryset.filter(switched_off_at=None))
        for webhook in found:
            manage.switch_off(webhook, by=user_of(request))
        messages.success(request, f"{len(found):,} switched off. Nothing more is told to them.")


@admin.register(Delivery)
class DeliveryAdmin(ViewAdmin[Delivery]):
    """The log of webhooks. Bodies are not shown: they have what people wrote."""

    list_display = ("id", "type", "webhook", "state", "attempts", "made", "status")
    list_select_related = ("webhook",)
    ordering = ("-id",)
    fields = (
        ("webhook", "type", "sequence"),
        ("state", "attempts", "status"),
        "answer",
        ("created_at", "next_try_at", "give_up_at", "ended_at"),
    )
    unread = ("payload", "webhook__secrets")

    made = moment_column("created_at", "Made")


@admin.register(ResultFeed)
class ResultFeedAdmin(ViewAdmin[ResultFeed]):
    """How far the results of runs have been told."""

    list_display = ("id", "webhook", "run", "last_attempt", "done")
    list_select_related = ("webhook", "run")
    ordering = ("-id",)
    fields = ("webhook", "run", "last_attempt", "last_skipped", "done")
    unread = ("webhook__secrets", "run__parts")


@admin.register(StoredAnswer)
class StoredAnswerAdmin(ViewAdmin[StoredAnswer]):
    """Answers that are kept for repeated requests. Their bodies are not shown: they belong to the key's person."""

    list_display = ("name", "key", "status", "made")
    list_select_related = ("key",)
    ordering = ("-id",)
    fields = ("key", "name", "status", "content_type", "created_at")
    unread = ("body",)

    made = moment_column("created_at", "Answered")
