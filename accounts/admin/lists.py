"""Columns, links, filters and page numbers of the admin's lists."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.generics import Page, Paginator
from accounts.paging import counted
from activity.templatetags.paceline import moment, pill

Column = Callable[[Any, Any], str]


class CappedPaginator(Paginator[Any]):
    """Counts to five thousand and stops: in a table of millions a full count reads the whole table.

    The pages end there too. To find older rows, filter or search.
    """

    @cached_property
    def count(self) -> int:
        return counted(self.object_list) if isinstance(self.object_list, QuerySet) else len(self.object_list)

    def _get_page(self, rows: Any, number: int, paginator: Any) -> Page[Any]:
        """Find the ids first, so that skipped rows cost no joins."""
        if isinstance(self.object_list, QuerySet):
            rows = self.object_list.filter(pk__in=list(rows.values_list("pk", flat=True)))
        return Page(rows, number, paginator)


def pill_column(field: str, description: str) -> Column:
    """Return a column that shows a state as its pill."""

    @admin.display(description=description, ordering=field)
    def column(_: Any, row: Any) -> str:
        return pill(getattr(row, field))

    return column


def moment_column(field: str, description: str) -> Column:
    """Return a column that shows a time with its zone."""

    @admin.display(description=description, ordering=field)
    def column(_: Any, row: Any) -> str:
        return moment(getattr(row, field))

    return column


def list_link(model: type[Model], text: str, **lookups: object) -> SafeString:
    """Return a link to the filtered list of `model`: list_link(RunTarget, "Targets", run__id__exact=7)."""
    meta = model._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', address, urlencode(lookups), text)
