"""The forms of teams."""

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib.auth.forms import BaseUserCreationForm

from accounts.models import Role, TeamMate, User
from people.team import LONGEST_DAYS

if TYPE_CHECKING:
    _NewUser = BaseUserCreationForm[User]
else:
    _NewUser = BaseUserCreationForm

MEANINGS = {
    Role.READ: "Read: see everything",
    Role.WRITE: "Write: drafts and recipients",
    Role.SEND: "Send: schedule and steer",
    Role.MANAGE: "Manage: accounts, limits and people",
}


class InviteForm(forms.Form):
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "off"}))
    role = forms.ChoiceField(label="Role", choices=[*MEANINGS.items()], initial=Role.READ)
    days = forms.IntegerField(
        label="Valid for (days)",
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=7,
        help_text="The address works once.",
    )


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=[*MEANINGS.items()])


class HandOverForm(forms.Form):
    """The member who goes on, and the person's own name, typed to confirm."""

    to = forms.ModelChoiceField(
        queryset=User.objects.none(), label="Hand over to", empty_label="Choose a member"
    )
    typed = forms.CharField(label="Type your username to confirm", max_length=150)

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        mates = TeamMate.objects.filter(owner=person).values("mate")
        field = cast("forms.ModelChoiceField[User]", self.fields["to"])
        field.queryset = User.objects.filter(pk__in=mates, is_active=True).order_by("username")

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if typed.strip() != self.person.get_username():
            raise forms.ValidationError("This is not your username.")
        return typed


class JoinForm(_NewUser):
    """The account of a person who was invited and has none yet."""

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name")
