"""Lists of tables with millions of rows, where an index must serve every search, filter and order.

The full list shows the newest rows by id. A list of one run, by its link or by searching “run 12”, follows
the index of that run; only then is there a filter, because only then does an index serve it.
"""
# ruff: noqa: ARG002 - Django passes more than these need

import re
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from accounts.admin.roles import ViewAdmin

M = TypeVar("M", bound=Model)
Ordering = list[str | Combinable] | tuple[str | Combinable, ...]

RUN = re.compile(r"\s*run\s*(\d{1,18})\s*", re.IGNORECASE)
NUMBER = re.compile(r"\s*(\d{1,18})\s*")


def chosen_run(request: HttpRequest) -> str | None:
    """Return the run that the list is narrowed to, or None."""
    if searched := RUN.fullmatch(request.GET.get("q", "")):
        return searched[1]
    return request.GET.get("run__id__exact")


class RunRowsAdmin(ViewAdmin[M]):
    """Administration of rows that belong to runs, found by number only."""

    search_fields = ("id",)
    search_help_text = "A number finds that row, “run 12” the rows of a run."
    sortable_by = ()
    ordering = ("-id",)
    # An order that an index serves, for the rows of one run.
    ordering_in_a_run: ClassVar[tuple[str, ...]] = ("-id",)

    def get_ordering(self, request: HttpRequest) -> Ordering:
        return self.ordering_in_a_run if chosen_run(request) else super().get_ordering(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[M], search_term: str
    ) -> tuple[QuerySet[M], bool]:
        if run := RUN.fullmatch(search_term):
            return queryset.filter(run_id=int(run[1])), False
        if number := NUMBER.fullmatch(search_term):
            return queryset.filter(pk=int(number[1])), False
        return (queryset.none() if search_term.strip() else queryset), False


class WithinRunFilter(admin.SimpleListFilter):
    """A filter that appears once a run is chosen."""

    field: str
    options: Sequence[tuple[str, str]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return self.options if chosen_run(request) else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.field: self.value()}) if self.value() else queryset
