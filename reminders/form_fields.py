"""Form fields of a reminder: wall-clock times."""

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime


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
