"""Form fields and widgets of the admin beyond Django's own."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.db.models import ForeignKey, Model
from django.forms import models
from django.forms.fields import InvalidJSONInput

from accounts.generics import ModelForm
from config.web.json_bodies import require_storable


def is_id(value: object) -> bool:
    """Return whether the value can be looked up as an id."""
    return str(value).isascii() and str(value).isdecimal() and len(str(value)) < 19


class _IdsOnly:
    """An autocomplete for a form that is shown again after errors: values that are not ids are not looked up."""

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> list[Any]:
        found: list[Any] = super().optgroups(name, [each for each in value if is_id(each)], attr)  # type: ignore[misc]
        return found


class Autocomplete(_IdsOnly, AutocompleteSelect):
    pass


class AutocompleteMany(_IdsOnly, AutocompleteSelectMultiple):
    pass


class ChosenAutocomplete(Autocomplete):
    """An autocomplete that is given the chosen row, instead of asking the database for every row."""

    chosen: Model | None = None

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> list[Any]:
        if self.chosen is None or list(value) != [str(self.chosen.pk)]:
            return super().optgroups(name, value, attr)
        empty = [] if self.is_required else [self.create_option(name, "", "", False, 0)]
        option = self.create_option(name, self.chosen.pk, str(self.chosen), True, len(empty))
        return [(None, [*empty, option], 0)]


def inner(field: forms.Field) -> forms.Widget:
    """Return the widget that a person types into, without the links that the admin puts around it."""
    widget: forms.Widget = getattr(field.widget, "widget", None) or field.widget
    return widget


class InlineRows(models.BaseInlineFormSet):  # type: ignore[type-arg]  # its stubs want what it lacks
    """Rows whose fields have labels of their own: screen readers do not take a column's title for a label."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        for name, field in form.fields.items():
            inner(field).attrs.setdefault("aria-label", field.label or name)


class InlineForm(ModelForm[Any]):
    """One row of an inline. Its autocompletes use what was loaded together with the row."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            widget = inner(field)
            if isinstance(widget, ChosenAutocomplete):
                widget.chosen = self._loaded(name)

    def _loaded(self, name: str) -> Model | None:
        field = self.instance._meta.get_field(name)
        if isinstance(field, ForeignKey) and field.is_cached(self.instance):
            related: Model | None = field.get_cached_value(self.instance)
            return related
        return None


class SecretWidget(forms.Textarea):
    """A widget that takes a secret and never shows it again, not even the one that was just typed."""

    def __init__(self) -> None:
        super().__init__(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"})

    def format_value(self, value: Any) -> None:  # noqa: ARG002 - that is the point
        return None


class StorableJSONField(forms.JSONField):
    """A JSON field that accepts only what PostgreSQL can store and Python can read at that depth."""

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
            require_storable(found)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError("This JSON cannot be stored.") from error
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the text that the form shows again: a value that cannot be stored, as it was typed."""
        try:
            found = super().bound_data(data, initial)
            require_storable(found)
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)
        return found


class SecretField(StorableJSONField):
    """A field for a small JSON object of texts. An empty field keeps what is stored."""

    widget = SecretWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)

    def clean(self, value: Any) -> dict[str, str]:
        given = super().clean(value)
        if given is None:
            return {}
        if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
            raise forms.ValidationError('Write names and texts, like {"token": "…"}.')
        return given
