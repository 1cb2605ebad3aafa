"""A form field for days of the week: seven boxes."""

from typing import Any

from django import forms

from delivery.window import DAYS


class SendDaysField(forms.MultipleChoiceField):
    """A box per day, cleaned to their bits."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=DAYS, error_messages={"required": "Choose at least one day."}, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return [bit for bit, _ in DAYS if value & bit] if isinstance(value, int) else value

    def clean(self, value: Any) -> int:
        return sum(int(bit) for bit in set(super().clean(value)))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)
