"""Form fields of a reminder: its send days as seven boxes, and wall-clock times."""

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime

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


class WallClockField(forms.SplitDateTimeField):
    """A time without a zone, as the clock shows it: Django would read it in the zone of the person who types it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=AdminSplitDateTime, **kwargs)
        for part, name in zip(self.widget.widgets, ("Date", "Time"), strict=True):
            part.attrs["aria-label"] = name

    def compress(self, data_list: Any) -> datetime | None:
        day: date | None
        clock: time | None
        day, clock = data_list or (None, None)
        if not data_list:
            return None
        if day is None or clock is None:
            raise forms.ValidationError("Give both a date and a time.")
        return datetime.combine(day, clock)
