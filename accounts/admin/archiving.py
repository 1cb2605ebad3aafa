"""Archiving in the admin's lists: rows that have a history are archived, not deleted."""
# ruff: noqa: ARG002 - Django passes more than these need

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts.admin.actions import Button, RowActions
from accounts.models import Role
from accounts.roles import touchable


class ArchivedFilter(admin.SimpleListFilter):
    """A filter that hides archived rows until somebody asks for them."""

    title = "archived"
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("all", "All")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield from ({**first, "display": "No"}, *others)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        return queryset.filter(archived_at__isnull=self.value() != "yes")


class Archiving(RowActions):
    """Adds the actions. A subclass says which rows cannot be archived yet, and what to do about it."""

    everything = "?archived=all"
    in_use = "still in use"

    def archivable(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows

    def buttons(self, row: Any) -> Iterable[Button]:
        if row.archived_at:
            yield Button(action="unarchive", label="Unarchive")
        elif self.archivable(type(row)._base_manager.filter(pk=row.pk)).exists():
            yield Button(action="archive", label="Archive")

    @admin.action(description="Archive the selected %(verbose_name_plural)s", permissions=["view"])
    def archive(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        rows = touchable(queryset.filter(archived_at=None), request.user, Role.MANAGE)
        asked = rows.count()
        done = self.archivable(rows).update(archived_at=timezone.now())
        if done:
            self.message_user(request, f"Archived: {done:,}.", messages.SUCCESS)
        if done < asked:
            self.message_user(request, f"Not archived: {asked - done:,}, {self.in_use}.", messages.WARNING)
        return self.back(request)

    @admin.action(description="Unarchive the selected %(verbose_name_plural)s", permissions=["view"])
    def unarchive(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        rows = touchable(queryset.filter(archived_at__isnull=False), request.user, Role.MANAGE)
        self.message_user(request, f"Unarchived: {rows.update(archived_at=None):,}.", messages.SUCCESS)
        return self.back(request)
