"""Administration of recipients, their tags and the changes of their consent."""
# ruff: noqa: ARG002 - Django passes more than these need

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.actions import MOST_AT_ONCE, Button, Question, RowActions, confirmed
from accounts.admin.archiving import ArchivedFilter, Archiving
from accounts.admin.lists import list_link, moment_column, pill_column
from accounts.admin.roles import RoleAdmin, ViewAdmin
from accounts.models import ConsentChange, Recipient, Tag
from accounts.pages.recipient_forms import ReasonForm
from accounts.paging import counted
from accounts.recipients import tags
from accounts.recipients.consent_actions import ACTIONS, ConsentAction, suiting
from accounts.recipients.search import matching
from accounts.recipients.states import state_now
from accounts.roles import ALL


class MergeForm(forms.Form):
    """The tag that stays when others are merged into it."""

    into = forms.ModelChoiceField(Tag.objects.none(), label="Merge into", empty_label=None)

    def __init__(self, data: Any, *, offered: QuerySet[Tag]) -> None:
        super().__init__(data)
        self.fields["into"].queryset = offered  # type: ignore[attr-defined]


@admin.register(Tag)
class TagAdmin(RowActions, RoleAdmin[Tag]):
    page = "recipients:tag"
    actions = ("merge_tags",)
    refusals = (tags.TagError, PermissionDenied)
    list_display = ("name", "owner", "recipients")
    list_select_related = ("owner",)
    search_fields = ("name", "^owner__username")
    autocomplete_fields = ("owner",)
    settled_when_made = ("owner",)
    fields = ("owner", "name")

    @admin.display(description="Recipients")
    def recipients(self, tag: Tag) -> str:
        return list_link(Recipient, "Show", tags__id__exact=tag.pk)

    @admin.action(description="Merge the selected tags into one", permissions=["view"])
    def merge_tags(self, request: HttpRequest, queryset: QuerySet[Tag]) -> HttpResponse | None:
        """Ask which of the tags stays; the recipients and reminders of the others get it."""
        form = MergeForm(request.POST if confirmed(request) else None, offered=queryset)
        if form.is_valid():
            into = form.cleaned_data["into"]
            others = queryset.exclude(pk=into.pk)
            return self.each(request, others, partial(_merge, into=into), f"Merged into “{into}”")
        asked = Question(
            action="merge_tags",
            title="Merge these tags?",
            sentence="Everyone who has one of the others gets the tag that stays. The others are deleted.",
            button="Merge",
            rows=[(tag, _recipients(tag)) for tag in queryset[:MOST_AT_ONCE]],
            gives_up=True,
            form=form,
        )
        return self.ask(request, asked)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return how many recipients lose each tag: Django would list each of them, up to a million lines."""
        told = [f"{tag} (removed from {_recipients(tag)})" for tag in objs]
        return told, {"tags": len(objs)}, set(), []


def _merge(tag: Tag, *, into: Tag, by: Any) -> None:
    tags.merge(tag, into=into, by=by)


def _recipients(tag: Tag) -> str:
    count = counted(tag.recipients.all())
    return "1 recipient" if count == 1 else f"{count} recipients"


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


class Consenting(Archiving):
    """Adds the actions that change consent, each recorded with its reason."""

    def buttons(self, row: Recipient) -> Iterable[Button]:
        for name, action in suiting(row, ALL):
            yield Button(action=name, label=action.verb, gives_up=action.gives_up)
        yield from super().buttons(row)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for name, action in ACTIONS.items():
            actions[name] = (_action(name, action), name, f"{action.verb}: the selected recipients")
        return actions

    def change_consent(
        self, request: HttpRequest, name: str, action: ConsentAction, chosen: QuerySet[Recipient]
    ) -> HttpResponse | None:
        form = ReasonForm(request.POST if confirmed(request) else None)
        if form.is_valid():
            how = form.cleaned_data["how"]
            return self.each(request, chosen, partial(action.do, how=how), action.done.capitalize())
        count = chosen.count()
        asked = Question(
            action=name,
            title=f"{action.verb}?",
            sentence=action.text,
            button=action.verb if count == 1 else f"{action.verb} ({count:,})",
            rows=[(recipient, recipient.address) for recipient in chosen[:MOST_AT_ONCE]],
            gives_up=action.gives_up,
            form=form,
        )
        return self.ask(request, asked)


def _action(
    name: str, action: ConsentAction
) -> Callable[[Consenting, HttpRequest, QuerySet[Recipient]], HttpResponse | None]:
    def act(page: Consenting, request: HttpRequest, chosen: QuerySet[Recipient]) -> HttpResponse | None:
        return page.change_consent(request, name, action, chosen)

    return act


@admin.register(Recipient)
class RecipientAdmin(Consenting, RoleAdmin[Recipient]):
    """Pages of recipients. Nobody types a cooldown: it changes with what a recipient writes."""

    page = "recipients:recipient"

    list_display = ("__str__", "address", "owner", "channel", "kind", "state", "account", "heard")
    list_filter = ("channel", "kind", StateFilter, ArchivedFilter)
    list_select_related = ("owner", "account")
    unread = ("account__credentials",)
    # Makes Django show the search box; `get_search_results` does the search.
    search_fields = ("name", "address")
    search_help_text = "Searches the beginnings of words in the name and the address."
    autocomplete_fields = ("owner", "account", "tags")
    settled_when_made = ("owner", "channel")
    ordering = ("-id",)
    actions = ("archive", "unarchive")
    readonly_fields = (
        "kind",
        "state",
        "opted_out_at",
        "blocked_at",
        "undeliverable_at",
        "undeliverable_for",
        "undeliverable_source",
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
            {"fields": ("fields",), "description": "Use them in messages as {{ field }}, like {{ name }}."},
        ),
        (
            "Consent",
            {
                "fields": ("state", "opted_out_at", "blocked_at", "consent"),
                "description": "Nothing is sent to people who opted out until they opt in again.",
            },
        ),
        (
            "Undeliverable",
            {
                "fields": ("undeliverable_at", "undeliverable_for", "undeliverable_source"),
                "description": "Nothing is sent to an address at which nothing arrives. "
                "A message from it, or a person, lifts this.",
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
                "description": "After three follow-ups without a reply a cooldown starts; a reply ends it.",
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
        return matching(queryset, search_term, by="-id"), False

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
