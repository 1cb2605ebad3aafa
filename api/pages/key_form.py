"""The form that makes a key."""

from datetime import datetime, time
from typing import Any

from django import forms
from django.utils import timezone

from api.scopes import MEANINGS, Scope


class KeyForm(forms.Form):
    """The name of a key, what it may do, and its last day in the person's zone."""

    name = forms.CharField(max_length=80, help_text="The program that will use it.")
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=[(scope.value, f"{scope.label}: {MEANINGS[scope]}") for scope in Scope],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )
    last_day = forms.DateField(
        label="Last day",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="Leave empty for a key without an end.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        day = cleaned.get("last_day")
        if day is not None:
            # The last moment of the day: the key still works on it.
            cleaned["ends_at"] = timezone.make_aware(datetime.combine(day, time.max))
            if cleaned["ends_at"] <= timezone.now():
                self.add_error("last_day", "This day is over. Choose a later one.")
        return cleaned
