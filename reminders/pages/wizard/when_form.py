"""The form of the third step. Repeating times are chosen in words and stored as a cron expression."""

import re
from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone

from accounts.generics import ModelForm
from accounts.zones import ChecksZone, common_zones
from delivery.pages.days_field import SendDaysField
from delivery.window import NAMES
from reminders.models import Reminder
from reminders.moments import BadCronError, check_cron, instant_of, too_far

REPEATS = (
    ("daily", "Every day"),
    ("weekdays", "Monday to Friday"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
    ("custom", "Cron expression"),
)
HOURS = [(hour, f"{hour:02}:00") for hour in range(25)]
SIMPLE = re.compile(r"^(\d{1,2}) (\d{1,2}) (\*|\d{1,2}) \* (\*|1-5|[0-7])$")


class WallTimeField(forms.DateTimeField):
    """A local time without a zone: another field has the zone, and the reader's zone does not matter."""

    def to_python(self, value: Any) -> datetime | None:
        with timezone.override(UTC):
            read = super().to_python(value)
        return read.replace(tzinfo=None) if read else None


class WhenForm(ChecksZone, ModelForm[Reminder]):
    """The schedule of a reminder and its delivery hours."""

    at = WallTimeField(
        label="Date and time",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    repeat = forms.ChoiceField(label="How often", choices=REPEATS, required=False)
    repeat_at = forms.TimeField(
        label="At", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    weekday = forms.TypedChoiceField(
        label="On", choices=list(enumerate(NAMES, 1)), coerce=int, required=False
    )
    month_day = forms.IntegerField(
        label="On day",
        min_value=1,
        max_value=31,
        required=False,
        help_text="Months without this day are skipped.",
    )
    window_start_hour = forms.TypedChoiceField(label="From", choices=HOURS[:24], coerce=int)
    window_end_hour = forms.TypedChoiceField(label="Until", choices=HOURS[1:], coerce=int)
    send_days = SendDaysField(label="On these days")
    gap_min = forms.FloatField(label="Shortest gap", min_value=0.5, max_value=1440, required=False)
    gap_max = forms.FloatField(label="Longest gap", min_value=0.5, max_value=1440, required=False)

    class Meta:
        model = Reminder
        fields = (
            "schedule",
            "cron",
            "zone",
            "window_start_hour",
            "window_end_hour",
            "send_days",
            "on_close",
            "on_overlap",
            "on_paused",
            "priority",
            "drip",
        )
        labels = {
            "cron": "Cron expression",
            "zone": "Time zone",
            "on_close": "If the delivery hours end before the run is finished",
            "on_overlap": "If the last run is still going",
            "on_paused": "If the last run is paused and waits for you",
            "drip": "Spread over days: each recipient gets a fixed time",
        }
        help_texts = {
            "cron": "Minute, hour, day of the month, month, day of the week: 0 9 * * 1-5 is 9:00, Monday to Friday.",
            "zone": "All times of this reminder are in this zone.",
            "priority": "Runs with a higher number go first on the same account.",
            "drip": "For first contacts, such as cold e-mail.",
        }
        widgets = {
            "schedule": forms.RadioSelect,
            "on_close": forms.RadioSelect,
            "on_overlap": forms.RadioSelect,
            "on_paused": forms.RadioSelect,
            "zone": forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        reminder: Reminder = kwargs["instance"]
        kwargs["initial"] = {**_times_of(reminder), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self.zones = common_zones()
        self.fields["priority"].widget.attrs |= {"min": -100, "max": 100}
        if self.presets_zone:
            self.fields["zone"].widget.attrs["data-preset-zone"] = ""

    @property
    def presets_zone(self) -> bool:
        """Return whether the browser may preset the zone: of a draft without a time, whose owner has chosen none."""
        reminder = self.instance
        untouched = reminder.fire_at is None and not reminder.cron and not reminder.owner.zone
        return bool(reminder.status == Reminder.Status.DRAFT and untouched and not self.is_bound)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        match values.get("schedule"):
            case Reminder.Schedule.ONCE:
                self._clean_once(values)
            case Reminder.Schedule.CRON:
                self._clean_repeating(values)
        self._clean_window(values)
        self._clean_drip(values)
        return values

    def _clean_once(self, values: dict[str, Any]) -> None:
        wall, zone = values.get("at"), values.get("zone")
        if wall is None:
            if "at" not in self.errors:
                self.add_error("at", "Choose when it is sent.")
            return
        now = timezone.now()
        if why := too_far(wall, now):
            self.add_error("at", why)
        elif zone:
            # The first and the last hours of all years have no instant in some zones.
            at = instant_of(wall, zone) if wall.year >= now.year - 1 else None
            self.instance.fire_at = at
            if at is None or at <= now:
                self.add_error("at", f"This time is in the past ({zone}). Choose a later one.")

    def _clean_repeating(self, values: dict[str, Any]) -> None:
        repeat = values.get("repeat") or "custom"
        if repeat != "custom":
            if values.get("repeat_at") is None:
                self.add_error("repeat_at", "Choose a time of the day.")
                return
            if repeat == "monthly" and not values.get("month_day"):
                self.add_error("month_day", "Choose a day of the month, from 1 to 31.")
                return
            values["cron"] = cron_of(
                repeat,
                values["repeat_at"],
                weekday=values.get("weekday") or 1,
                month_day=values.get("month_day") or 1,
            )
        try:
            check_cron(values.get("cron", ""))
        except BadCronError as error:
            self.add_error("cron", str(error))

    def _clean_window(self, values: dict[str, Any]) -> None:
        start, end = values.get("window_start_hour"), values.get("window_end_hour")
        if start is not None and end is not None and start >= end:
            self.add_error(
                "window_end_hour",
                "Delivery hours must end after they start, on the same day. For a night, make two reminders: "
                "one until 24:00 and one from 00:00.",
            )

    def _clean_drip(self, values: dict[str, Any]) -> None:
        least, most = values.get("gap_min") or 5, values.get("gap_max") or 20
        if least > most:
            self.add_error("gap_max", "The longest gap must not be shorter than the shortest.")
        else:
            self.instance.drip_gap_min, self.instance.drip_gap_max = round(least * 60), round(most * 60)


def cron_of(repeat: str, at: time, *, weekday: int = 1, month_day: int = 1) -> str:
    """Return the chosen rhythm as a cron expression; Monday is 1."""
    days = {
        "daily": "* * *",
        "weekdays": "* * 1-5",
        "weekly": f"* * {weekday}",
        "monthly": f"{month_day} * *",
    }[repeat]
    return f"{at.minute} {at.hour} {days}"


def repeat_of(cron: str) -> dict[str, Any]:
    """Return the form values for a cron expression; a complex one stays a cron expression."""
    match = SIMPLE.match(cron)
    if match is None or int(match[1]) > 59 or int(match[2]) > 23:
        return {"repeat": "custom" if cron else "daily", "repeat_at": time(9)}
    found: dict[str, Any] = {"repeat_at": time(int(match[2]), int(match[1]))}
    match match[3], match[4]:
        case "*", "*":
            found["repeat"] = "daily"
        case "*", "1-5":
            found["repeat"] = "weekdays"
        case "*", day:
            found |= {"repeat": "weekly", "weekday": int(day) or 7}
        case day, "*":
            found |= {"repeat": "monthly", "month_day": int(day)}
        case _:
            found["repeat"] = "custom"
    return found


def _times_of(reminder: Reminder) -> dict[str, Any]:
    return {
        **repeat_of(reminder.cron),
        "at": _wall(reminder.fire_at, reminder.zone),
        "gap_min": reminder.drip_gap_min / 60,
        "gap_max": reminder.drip_gap_max / 60,
    }


def _wall(moment: datetime | None, zone: str) -> datetime | None:
    """Return the local time in the reminder's zone; Django would use the reader's zone."""
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) if moment else None
