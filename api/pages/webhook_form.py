"""The form of a webhook: its address and its events."""

from typing import Any

from django import forms

from accounts.models.webhook import EventType


class WebhookForm(forms.Form):
    """The address that gets events, and which ones."""

    url = forms.CharField(
        label="Address",
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://example.com/paceline"}),
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=EventType.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )

    @property
    def chosen(self) -> list[EventType]:
        return [EventType(event) for event in self.cleaned_data["events"]]

    def blame(self, error: Any) -> None:
        """Show the refusal of an action at its field."""
        self.add_error(error.field if error.field in self.fields else None, str(error))
