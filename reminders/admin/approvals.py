"""The requests for approval in the admin, with the decisions of their page."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.actions import MOST_AT_ONCE, Button, Question, RowActions, confirmed
from accounts.admin.lists import moment_column
from accounts.admin.roles import ViewAdmin
from accounts.approvals.requests import DecidedError
from accounts.models import Approval, ApprovalNumber
from reminders.approvals.deciding import approve, refuse


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=300, help_text="Whoever asked reads it.")


@admin.register(Approval)
class ApprovalAdmin(RowActions, ViewAdmin[Approval]):
    """A list of requests, which staff decide here or on the page."""

    list_display = (
        "title",
        "kind",
        "state",
        "owner",
        "recipients",
        "asked_by",
        "asked",
        "decided_by",
        "decided",
    )
    list_filter = ("state", "kind")
    list_select_related = ("owner", "asked_by", "decided_by")
    unread = ("run__parts",)
    search_fields = ("title",)
    ordering = ("-id",)
    actions = ("approve", "refuse_it")
    refusals = (DecidedError, PermissionDenied)
    fields = (
        *("title", "kind", "state", "why", "owner", "reminder", "run", "account", "recipients", "covers"),
        *("asked_by", "asked_at", "expires_at", "decided_by", "decided_at", "reason"),
    )

    asked = moment_column("asked_at", "Asked")
    decided = moment_column("decided_at", "Decided")

    def buttons(self, row: Approval) -> Iterable[Button]:
        if row.state == Approval.State.WAITING:
            yield Button(action="approve", label="Approve")
            yield Button(action="refuse_it", label="Refuse", gives_up=True)

    @admin.action(description="Approve the selected requests", permissions=["view"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Approval]) -> HttpResponse | None:
        """Ask first. A request never changes what it is about: an edit replaces it, and this one is refused then."""
        if confirmed(request):
            return self.each(request, queryset, _approve, "Approved")
        return self.ask(
            request,
            Question(
                action="approve",
                title="Approve?",
                sentence="They leave at once, or at their time. Look at each on its page first: View on site.",
                button="Yes, approve",
                rows=_noted(queryset),
            ),
        )

    @admin.action(description="Refuse the selected requests", permissions=["view"])
    def refuse_it(self, request: HttpRequest, queryset: QuerySet[Approval]) -> HttpResponse | None:
        form = ReasonForm(request.POST if confirmed(request) else None)
        if form.is_valid():
            reason = form.cleaned_data["reason"]
            return self.each(request, queryset, lambda row, by: _refuse(row, reason, by=by), "Refused")
        return self.ask(
            request,
            Question(
                action="refuse_it",
                title="Refuse?",
                sentence="Nothing of it leaves. Scheduled reminders are drafts again.",
                button="Yes, refuse",
                rows=_noted(queryset),
                gives_up=True,
                form=form,
            ),
        )

    def view_on_site(self, obj: Approval) -> str:
        return f"/approvals/{obj.pk}/"


@admin.register(ApprovalNumber)
class ApprovalNumberAdmin(ViewAdmin[ApprovalNumber]):
    """A list of the owners' numbers. They are set on the page of a team: nobody loosens one alone."""

    list_display = ("owner", "above")
    list_select_related = ("owner",)
    fields = ("owner", "above")


def _noted(queryset: QuerySet[Approval]) -> list[tuple[Approval, str]]:
    rows = queryset.select_related("asked_by")[:MOST_AT_ONCE]
    return [(row, f"{row.asked_by or 'Paceline'} asks. {row.why}") for row in rows]


def _approve(row: Approval, *, by: Any) -> None:
    approve(row, content=row.content, by=by)


def _refuse(row: Approval, reason: str, *, by: Any) -> None:
    refuse(row, content=row.content, reason=reason, by=by)
