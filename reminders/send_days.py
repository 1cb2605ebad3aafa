"""The days on which a reminder sends: seven bits in the database, seven boxes in a form."""

from typing import Any

from django import forms

DAYS = [
    (1 << number, name)
    for number, name in enumerate(
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    )
]


def day_names(bits: int) -> str:
    """The days in words: Mon, Tue, Fri."""
    chosen = [name[:3] for bit, name in DAYS if bits & bit]
    return "Every day" if len(chosen) == len(DAYS) else ", ".join(chosen)


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
