"""The forms of a person's notifications: an address with what it is told, the hours, and who is told next."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms

from accounts.models import User
from activity.models import Notification
from notices.models import WEEK_MINUTES, NoticeAddress, Preferences, Rhythm
from notices.preferences import Wishes

PLACES = 5  # people who are told one after the other
ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth")
KINDS = {
    Notification.Kind.PAUSED: "A reminder paused",
    Notification.Kind.WAITING: "A reminder has waited for a decision too long",
    Notification.Kind.APPROVAL: "An approval is needed",
    Notification.Kind.FAILED: "A reminder was not delivered, or was switched off",
    Notification.Kind.PARTIAL: "A reminder was delivered in part, or messages came back",
    Notification.Kind.SUCCESS: "A reminder was delivered",
    Notification.Kind.CANCELED: "A reminder was canceled",
    Notification.Kind.MISSED: "A reminder was missed or skipped",
    Notification.Kind.ACCOUNT: "An account stopped, has trouble, or is back",
    Notification.Kind.WEBHOOK: "A webhook or an address for notifications was switched off",
}
CALM = {Notification.Kind.SUCCESS, Notification.Kind.CANCELED}  # not chosen at first


class ChoiceForm(forms.Form):
    """The kinds that an address is told, and how often."""

    kinds = forms.MultipleChoiceField(
        label="What it is told",
        choices=[(kind.value, words) for kind, words in KINDS.items()],
        widget=forms.CheckboxSelectMultiple,
        initial=[kind.value for kind in KINDS if kind not in CALM],
        error_messages={"required": "Choose at least one."},
    )
    rhythm = forms.ChoiceField(
        label="How often", choices=Rhythm.choices, widget=forms.RadioSelect, initial=Rhythm.AT_ONCE
    )


class AddressForm(ChoiceForm):
    """A new address."""

    address = forms.CharField(
        label="Address",
        max_length=1000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="An e-mail address, or the address of a chat service such as ntfys://ntfy.sh/your-topic.",
    )
    field_order = ("address", "kinds", "rhythm")


class CodeForm(forms.Form):
    code = forms.CharField(
        label="Code from the mail",
        max_length=10,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "one-time-code"}),
    )


class HoursForm(forms.Form):
    """When a person may be disturbed, whose notifications they want, and who is told next."""

    quiet_from = forms.TimeField(
        label="Quiet from", required=False, widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"})
    )
    quiet_until = forms.TimeField(
        label="Quiet until", required=False, widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"})
    )
    daily_at = forms.TimeField(
        label="Message of the day at", widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"})
    )
    follows = forms.TypedMultipleChoiceField(
        label="Teams",
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text="You get the notifications of the people you choose as if they were yours.",
    )
    escalate_minutes = forms.IntegerField(
        label="Minutes until it is told again",
        required=False,
        min_value=0,
        max_value=WEEK_MINUTES,
        help_text="When a reminder waits for a decision. 0: never.",
    )

    def __init__(
        self, *args: Any, teams: Sequence[User], mates: Sequence[User], usual: int, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._choose(teams)
        self.fields["escalate_minutes"].widget.attrs["placeholder"] = str(usual)
        self.places = [f"next_{place}" for place in range(min(len(mates), PLACES))]
        for place, name in enumerate(self.places):
            self.fields[name] = forms.TypedChoiceField(
                label=f"{ORDINALS[place]} person after you",
                required=False,
                coerce=int,
                empty_value=None,
                choices=[("", "Nobody"), *((mate.pk, str(mate)) for mate in mates)],
            )

    def _choose(self, teams: Sequence[User]) -> None:
        if not teams:
            del self.fields["follows"]
            return
        field = cast("forms.TypedMultipleChoiceField", self.fields["follows"])
        field.choices = [(owner.pk, str(owner)) for owner in teams]

    @property
    def next_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.places]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        start, end = found.get("quiet_from"), found.get("quiet_until")
        if (start is None) != (end is None):
            self.add_error("quiet_until", "Enter both times, or none.")
        elif start is not None and start == end:
            self.add_error("quiet_until", "Enter two different times.")
        return found

    @property
    def wishes(self) -> Wishes:
        """Return what was chosen on a valid form."""
        chosen = self.cleaned_data
        return Wishes(
            quiet_from=chosen["quiet_from"],
            quiet_until=chosen["quiet_until"],
            daily_at=chosen["daily_at"],
            escalate_minutes=chosen["escalate_minutes"],
            next_people=[chosen[name] for name in self.places if chosen[name] is not None],
            follows=chosen.get("follows", []),
        )


def said(chosen: Preferences, follows: Sequence[int]) -> dict[str, Any]:
    """Return what the form of the hours shows at first."""
    people = {f"next_{place}": pk for place, pk in enumerate(chosen.next_people)}
    return {
        "quiet_from": chosen.quiet_from,
        "quiet_until": chosen.quiet_until,
        "daily_at": chosen.daily_at,
        "escalate_minutes": chosen.escalate_minutes,
        "follows": list(follows),
        **people,
    }


def told(address: NoticeAddress) -> dict[str, Any]:
    """Return what the form of an address shows at first."""
    return {"kinds": address.kinds, "rhythm": address.rhythm}
