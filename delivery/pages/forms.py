"""The forms of accounts: details, speed, limits and credentials."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings

from accounts import own_addresses
from accounts.generics import ModelForm
from accounts.models import Account, Limit
from accounts.own_addresses import NotAllowedError
from accounts.profiles import PRESELECTED, PROFILES
from accounts.zones import ChecksZone, common_zones
from delivery import transports
from delivery.pacing import LONG_SPANS, Limits
from delivery.pages.days_field import SendDaysField
from delivery.sessions import one_account
from delivery.transports.base import CredentialField, CredentialsError

A_DAY = 86_400  # seconds
CAPS = ("per_minute", "per_hour", "per_day", *LONG_SPANS, "new_per_day", "new_per_week")


class AccountForm(ChecksZone, ModelForm[Account]):
    """Name, profile, time zone and own address of an account."""

    class Meta:
        model = Account
        fields = ("name", "profile", "zone", "own_address")
        labels = {"own_address": "Your own address", "zone": "Time zone"}
        help_texts = {
            "zone": "Daily limits restart at midnight in this zone.",
            "own_address": "Used for test messages. You confirm it with a code first.",
            "name": "Shown only to you and your team.",
        }
        widgets = {
            "profile": forms.RadioSelect,
            "zone": forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zones = common_zones()
        if self.instance._state.adding and not self.instance.owner.zone and not self.is_bound:
            self.fields["zone"].widget.attrs["data-preset-zone"] = ""
        channel = self.instance.channel
        fitting = [p for p in PROFILES.values() if not p.channels or channel in p.channels]
        self.fields["profile"].choices = [(p.key, p.label) for p in fitting]  # type: ignore[attr-defined]
        if self.instance.profile not in {p.key for p in fitting}:
            self.initial["profile"] = PRESELECTED.get(channel, fitting[0].key)

    def profiles(self) -> list[tuple[Any, str]]:
        """Return each radio button with the description of its profile."""
        return [(radio, PROFILES[radio.data["value"]].about) for radio in self["profile"].subwidgets]

    def save(self, commit: bool = True) -> Account:
        """Give an account the present limits of a profile that was chosen now; another keeps those it had."""
        if "profile" in self.changed_data:
            self.instance.as_before = False
        return super().save(commit)

    def clean_own_address(self) -> str:
        """Return the address in its canonical form; one that cannot be an address of this channel is refused."""
        typed: str = self.cleaned_data["own_address"].strip()
        try:
            return own_addresses.read(self.instance, typed) if typed else ""
        except NotAllowedError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        same = Account.objects.filter(owner=self.instance.owner_id, channel=self.instance.channel, name=name)
        if same.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(
                "Another account on this channel has this name. Choose a different name."
            )
        return name


class PaceForm(ModelForm[Account]):
    """Number of messages at the same time, and the warm-up of the account."""

    class Meta:
        model = Account
        fields = ("group_concurrency", "shows_typing", "warmup_start", "warmup_step", "warmup_ceiling")
        labels = {
            "group_concurrency": "Messages at the same time",
            "shows_typing": "Show “typing” before each message",
            "warmup_start": "First day",
            "warmup_step": "Added per day",
            "warmup_ceiling": "Maximum",
        }
        help_texts = {
            "group_concurrency": "Leave empty to use the default.",
            "shows_typing": "Also marks the chat as seen. Lasts a few seconds, inside the gap between messages.",
            **dict.fromkeys(("warmup_start", "warmup_step", "warmup_ceiling"), ""),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Show in each empty field the value that is used without it."""
        super().__init__(*args, **kwargs)
        inherited = {"group_concurrency": settings.GROUP_CONCURRENCY}
        if plan := PROFILES[self.instance.profile].warm_up:
            inherited |= {f"warmup_{name}": getattr(plan, name) for name in ("start", "step", "ceiling")}
        kind = transports.kinds().get(self.instance.transport)
        if kind is None or not kind.default_capabilities.typing:
            del self.fields["shows_typing"]
        for name, value in inherited.items():
            self.fields[name].widget.attrs["placeholder"] = str(value)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        start, step, ceiling = (cleaned.get(f"warmup_{name}") for name in ("start", "step", "ceiling"))
        if any((start, step, ceiling)) and not (start and step and ceiling):
            raise forms.ValidationError("Enter all three numbers, or leave all three empty.")
        if start and ceiling and ceiling < start:
            self.add_error("warmup_ceiling", "The maximum must not be lower than the first day.")
        return cleaned


HOURS = [("", "Any hour"), *((hour, f"{hour:02d}:00") for hour in range(25))]


class HoursForm(ModelForm[Account]):
    """The working hours of the account: nothing is sent outside them."""

    work_days = SendDaysField(label="On these days")

    class Meta:
        model = Account
        fields = ("work_start_hour", "work_end_hour", "work_days")
        labels = {"work_start_hour": "From", "work_end_hour": "Until"}
        help_texts = {"work_start_hour": ""}
        widgets = dict.fromkeys(("work_start_hour", "work_end_hour"), forms.Select(choices=HOURS))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        start, end = cleaned.get("work_start_hour"), cleaned.get("work_end_hour")
        if self.errors:
            return cleaned
        if (start is None) != (end is None):
            self.add_error(
                "work_end_hour" if end is None else "work_start_hour", "Enter both hours, or none of them."
            )
        elif start is not None and end is not None and not start < end <= 24:
            self.add_error("work_end_hour", "Choose a later hour, 24 at most: hours cannot go over midnight.")
        return cleaned


class LimitForm(ModelForm[Limit]):
    """The limits of one account for one action. An empty field uses the value of the profile."""

    class Meta:
        model = Limit
        fields = (*CAPS, "gap_min", "gap_max", "batch_size", "batch_pause")
        labels = {
            "per_minute": "Per minute",
            "per_hour": "Per hour",
            "per_day": "Per day",
            "per_24_hours": "Per 24 hours",
            "per_7_days": "Per 7 days",
            "per_30_days": "Per 30 days",
            "new_per_day": "New people per day",
            "new_per_week": "New people per week",
            "gap_min": "Shortest gap (seconds)",
            "gap_max": "Longest gap (seconds)",
            "batch_size": "Messages per batch",
            "batch_pause": "Break after batch (seconds)",
        }
        help_texts = {"gap_min": "", "batch_pause": "", "per_day": ""}

    def hint(self, inherited: Limits) -> None:
        """Show in each empty field the value that is used without it."""
        for name, field in self.fields.items():
            if value := getattr(inherited, name):
                field.widget.attrs["placeholder"] = f"{value:g}"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name, least in (("gap_min", 0.0), ("gap_max", 0.0), ("batch_pause", 0.1)):
            value = cleaned.get(name)
            if value is not None and not least <= value <= A_DAY:
                self.add_error(name, f"Enter {least:g} to {A_DAY:,} seconds (one day).")
        if cleaned.get("batch_size") == 0:
            self.add_error("batch_size", "Enter at least 1.")
        self._both("gap_min", "gap_max", "Enter both the shortest and the longest gap.")
        self._both("batch_size", "batch_pause", "Enter both the batch size and the break.")
        low, high = cleaned.get("gap_min"), cleaned.get("gap_max")
        if low is not None and high is not None and low > high:
            self.add_error("gap_max", "The longest gap must not be shorter than the shortest.")
        for name in CAPS:
            if cleaned.get(name) == 0:
                self.add_error(name, "Enter at least 1. To send nothing, pause the account.")
        return cleaned

    def _both(self, one: str, other: str, sentence: str) -> None:
        if self.has_error(one) or self.has_error(other):
            return
        given = [self.cleaned_data.get(name) is not None for name in (one, other)]
        if any(given) and not all(given):
            self.add_error(other if given[0] else one, sentence)


class CredentialsForm(forms.Form):
    """The credentials that a transport needs. An empty field keeps its stored secret, which is never shown."""

    def __init__(
        self, account: Account, *args: Any, stored: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.account = account
        self.kind = kind = transports.kinds()[account.transport]
        self.stored = dict(stored or {})
        for field in kind.credential_fields:
            self.fields[field.name] = _field(field, self.stored.get(field.name, ""))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in self._kept_for_elsewhere():
            self.add_error(name, "The address of the service has changed. Enter this secret again.")
        if not self.errors:
            try:
                transports.make(self.kind.kind, self.credentials, None)
            except CredentialsError as error:
                self.add_error(self._blamed(str(error)), str(error))
        if not self.errors and (taken := one_account.why_taken(self.account, self.credentials)):
            self.add_error(self._names_the_session(), taken)
        return cleaned

    def _names_the_session(self) -> str:
        """Return the last field that identifies the session; the fields before it are the service's address."""
        return [field.name for field in self.kind.credential_fields if field.session][-1]

    def _kept_for_elsewhere(self) -> list[str]:
        """Return the names of stored secrets that would be sent to another address than before.

        A person who may change an account must not read its secrets by sending them to their own server.
        """
        fields = self.kind.credential_fields
        moved = any(
            (self.cleaned_data.get(field.name) or field.default)
            != (self.stored.get(field.name) or field.default)
            for field in fields
            if field.place
        )
        if not moved:
            return []
        return [
            field.name
            for field in fields
            if field.secret and self.stored.get(field.name) and not self.cleaned_data.get(field.name)
        ]

    @property
    def credentials(self) -> dict[str, str]:
        """Return the credentials to store."""
        given = {name: self.cleaned_data.get(name, "") for name in self.fields}
        secret = {field.name for field in self.kind.credential_fields if field.secret}
        return {
            name: value or (self.stored.get(name, "") if name in secret else "")
            for name, value in given.items()
        }

    def _blamed(self, sentence: str) -> str | None:
        """Return the field whose label begins the error text; None if there is none."""
        labels = {field.label: field.name for field in self.kind.credential_fields}
        return next((name for label, name in labels.items() if sentence.startswith(label)), None)


def _field(field: CredentialField, stored: str) -> forms.Field:
    kept = field.secret and bool(stored)
    given: dict[str, Any] = {
        "label": field.label,
        "required": field.required and not field.default and not kept,
        "help_text": "Stored. Leave empty to keep it." if kept else field.help,
    }
    if field.choices:
        return forms.ChoiceField(choices=field.choices, initial=stored or field.default, **given)
    if field.secret:
        attributes = {"autocomplete": "new-password"}
        return forms.CharField(widget=forms.PasswordInput(attrs=attributes), **given)
    attributes = {"autocomplete": "off", "placeholder": field.default}
    return forms.CharField(initial=stored or field.default, widget=forms.TextInput(attrs=attributes), **given)
