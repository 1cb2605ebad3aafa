"""The base classes of every admin page: roles decide, and no page gets slower as its table grows.

Django's model permissions are not used here. Staff may enter; `accounts/roles.py` alone decides what they see and
change, as everywhere else.
"""
# ruff: noqa: ARG002 - Django passes more than these need

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.db.models import FloatField, ForeignKey, JSONField, ManyToManyField, Model, QuerySet, TextField
from django.db.models.fields.related import RelatedField
from django.forms import ModelChoiceField, ModelMultipleChoiceField, NumberInput, Textarea
from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.lists import CappedPaginator
from accounts.admin.recorded import Recorded
from accounts.admin.widgets import (
    Autocomplete,
    AutocompleteMany,
    ChosenAutocomplete,
    InlineForm,
    InlineRows,
    StorableJSONField,
    is_id,
)
from accounts.generics import ModelAdmin, TabularInline
from accounts.models import Role, User
from accounts.roles import touchable, visible

M = TypeVar("M", bound=Model)
Parent = TypeVar("Parent", bound=Model)
Rule = Callable[[QuerySet[Any], Any], QuerySet[Any]]


def changeable(rows: QuerySet[M], user: Any) -> QuerySet[M]:
    """Return the rows that a person may change in any way, as an admin page does."""
    return touchable(rows, user, Role.MANAGE)


def is_staff(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_active and request.user.is_staff


def is_superuser(request: HttpRequest) -> bool:
    return is_staff(request) and request.user.is_superuser


def allowed(rule: Rule, row: Model, request: HttpRequest) -> bool:
    """Return whether `rule` allows the person `row`. Ask once per request, since Django asks a dozen times."""
    answers = request.__dict__.setdefault("_role_answers", {})
    if (rule, row) not in answers:
        answers[rule, row] = rule(type(row)._base_manager.filter(pk=row.pk), request.user).exists()
    return bool(answers[rule, row])


class _Choices:
    """Foreign keys that offer what the person may see, loaded as the other model's own page loads it."""

    admin_site: admin.AdminSite

    def get_field_queryset(
        self, db: str | None, db_field: "RelatedField[Any, Any]", request: HttpRequest
    ) -> QuerySet[Any]:
        return self.admin_site.get_model_admin(db_field.related_model).get_queryset(request)


class RoleAdmin(Recorded, _Choices, ModelAdmin[M]):
    """The pages of a model, for the people whom its roles allow."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    formfield_overrides = {JSONField: {"form_class": StorableJSONField}}
    list_select_related: ClassVar[tuple[str, ...]] = ()
    # Columns that no list and no form needs, such as another table's secrets.
    unread: ClassVar[tuple[str, ...]] = ()
    # Fields that are chosen when a row is added and never changed, because other rows rely on them.
    settled_when_made: ClassVar[tuple[str, ...]] = ()
    # The name of the operator's page for a row, where there is one.
    page: ClassVar[str] = ""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Drop references in the address that are not ids: Django would look them up and fail."""
        given = super().get_changeform_initial_data(request)
        references = {field.name for field in self.model._meta.get_fields() if field.is_relation}
        return {name: value for name, value in given.items() if name not in references or is_id(value)}

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelChoiceField[Any] | None":
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", Autocomplete(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelMultipleChoiceField[Any] | None":
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", AutocompleteMany(db_field, self.admin_site))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_view_on_site_url(self, obj: M | None = None) -> str | None:
        return reverse(self.page, args=[obj.pk]) if obj and self.page else None

    def save_model(self, request: HttpRequest, obj: M, form: Any, change: bool) -> None:
        """Save only the changed fields: the engine writes to other columns of the row at the same time."""
        if not change:
            return super().save_model(request, obj, form, change)
        typed = {*form.changed_data, *getattr(form, "also_changed", ())}
        columns = [
            column.name
            for column in obj._meta.concrete_fields
            if column.name in typed or getattr(column, "auto_now", False)
        ]
        return obj.save(update_fields=columns)

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        rows = visible(super().get_queryset(request), request.user).defer(*self.unread)
        return rows.select_related(*self.list_select_related) if self.list_select_related else rows

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return (*fields, *self.settled_when_made) if obj else fields

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return is_staff(request) and (obj is None or allowed(visible, obj, request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return is_staff(request) and (obj is None or allowed(changeable, obj, request))

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return self.has_change_permission(request, obj)


class KeptAdmin(RoleAdmin[M]):
    """Pages of rows that are never deleted here, since other rows refer to them as history. Some can be archived."""

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class ViewAdmin(KeptAdmin[M]):
    """Read-only pages. The engine writes these rows."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class RoleInline(_Choices, TabularInline[M, Parent]):
    """Rows inside their parent's page: people who may change the parent may change them."""

    extra = 0
    form = InlineForm
    formset = InlineRows
    formfield_overrides = {
        FloatField: {"widget": NumberInput(attrs={"class": "vIntegerField"})},
        TextField: {"widget": Textarea(attrs={"rows": 2, "cols": 28})},
    }
    list_select_related: ClassVar[tuple[str, ...]] = ()
    unread: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        rows = super().get_queryset(request).defer(*self.unread)
        return rows.select_related(*self.list_select_related) if self.list_select_related else rows

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelChoiceField[Any] | None":
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", ChosenAutocomplete(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_view_permission(self, request: HttpRequest, obj: Parent | None = None) -> bool:
        return is_staff(request) and (obj is None or allowed(visible, obj, request))

    def has_add_permission(self, request: HttpRequest, obj: Parent | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Parent | None = None) -> bool:
        return is_staff(request) and (obj is None or allowed(changeable, obj, request))

    def has_delete_permission(self, request: HttpRequest, obj: Parent | None = None) -> bool:
        return self.has_change_permission(request, obj)
