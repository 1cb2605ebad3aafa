"""Administration of keys: staff see who has which, and can revoke one. Nobody can read a key or make one here."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.access import user_of
from accounts.admin.lists import moment_column
from accounts.admin.roles import ViewAdmin
from api import keys
from api.models import ApiKey, StoredAnswer


@admin.register(ApiKey)
class ApiKeyAdmin(ViewAdmin[ApiKey]):
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

    @admin.action(description="Revoke the selected keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        found = list(queryset.filter(revoked_at=None))
        for key in found:
            keys.revoke(key, by=user_of(request))
        messages.success(request, f"{len(found):,} revoked. They no longer work.")


@admin.register(StoredAnswer)
class StoredAnswerAdmin(ViewAdmin[StoredAnswer]):
    """Answers that are kept for repeated requests. Their bodies are not shown: they belong to the key's person."""

    list_display = ("name", "key", "status", "made")
    list_select_related = ("key",)
    ordering = ("-id",)
    fields = ("key", "name", "status", "content_type", "created_at")
    unread = ("body",)

    made = moment_column("created_at", "Answered")
