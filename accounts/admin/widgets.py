"""What the admin's forms are made of beyond Django's own."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import ForeignKey, Model
from django.forms import models

from accounts.generics import ModelForm


class ChosenAutocomplete(AutocompleteSelect):
    """An autocomplete that is told what is chosen, instead of asking the database for every row."""

    chosen: Model | None = None

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> list[Any]:
        if self.chosen is None or list(value) != [str(self.chosen.pk)]:
            return super().optgroups(name, value, attr)
        empty = [] if self.is_required else [self.create_option(name, "", "", False, 0)]
        option = self.create_option(name, self.chosen.pk, str(self.chosen), True, len(empty))
        return [(None, [*empty, option], 0)]


def inner(field: forms.Field) -> forms.Widget:
    """What a person types into, without the links that the admin puts around it."""
    widget: forms.Widget = getattr(field.widget, "widget", None) or field.widget
    return widget


class InlineRows(models.BaseInlineFormSet):  # type: ignore[type-arg]  # its stubs want what it lacks
    """Rows whose fields are named by themselves: the title of a column is no label to a reader."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        for name, field in form.fields.items():
            inner(field).attrs.setdefault("aria-label", field.label or name)


class InlineForm(ModelForm[Any]):
    """One row of an inline, whose autocompletes know what was loaded together with the row."""

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
    """Takes a secret and never gives it back, not even the one that was just typed."""

    def __init__(self) -> None:
        super().__init__(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"})

    def format_value(self, value: Any) -> None:  # noqa: ARG002 - that is the point
        return None


class SecretField(forms.JSONField):
    """A small JSON object of texts. Empty means: keep what is stored."""

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
