"""Records what is added, changed and deleted in the admin, in the transaction of the change."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from audit.record import record

if TYPE_CHECKING:
    from accounts.generics import ModelAdmin

    Base = ModelAdmin[Any]
else:
    Base = object

BY_SIGNALS = frozenset({"user", "teammate"})  # recorded whoever saves them: `audit/people.py`
SHOWN = 20  # rows of a choice of many


class Recorded(Base):
    """The hooks that Django calls where it writes its own log."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Keep both sides of the change for `log_change`."""
        request.__dict__["_audit"] = _both_sides(form, formsets or ())
        return super().construct_change_message(request, form, formsets, add)

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record("admin.added", request, obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record("admin.changed", request, obj)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: "QuerySet[Any]") -> Any:
        for row in queryset:
            self._record("admin.deleted", request, row)
        return super().log_deletions(request, queryset)

    def _record(self, action: str, request: HttpRequest, row: Model) -> None:
        if row._meta.model_name in BY_SIGNALS:
            return
        before, after = request.__dict__.get("_audit", ({}, {}))
        record(action, row, by=request.user, before=before, after=after, note=str(row._meta.verbose_name))


def _both_sides(form: Any, formsets: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = _of_form(form)
    for formset in formsets:
        gone = getattr(formset, "deleted_forms", [])
        for place, each in enumerate(formset.forms):
            if each in gone or each.has_changed():
                name = f"{each._meta.model._meta.verbose_name} {each.instance.pk or place}"
                before[name], after[name] = _of_form(each)
                after[name] = "deleted" if each in gone else after[name]
    return before, after


def _of_form(form: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [name for name in form.changed_data if name in form.cleaned_data]
    return (
        {name: _plain(form.get_initial_for_field(form.fields[name], name)) for name in names},
        {name: _plain(form.cleaned_data[name]) for name in names},
    )


def _plain(value: Any) -> Any:
    """Return a value of a form as it is recorded; of a choice of many, the first ones."""
    if isinstance(value, QuerySet | list | tuple):
        return [_plain(each) for each in value[:SHOWN]]
    if isinstance(value, Model):
        return value.pk
    return dict(value) if isinstance(value, Mapping) else value
