"""Forms for single recipients, their consent and their tags."""

import csv
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from accounts.generics import ModelForm
from accounts.imports.columns import RESERVED, variable_name
from accounts.imports.rows import LONGEST_TAG, LONGEST_VALUE
from accounts.models import Account, Recipient, Role, Tag, User
from accounts.models.account import Channel
from accounts.recipients import tags
from accounts.recipients.change import told
from accounts.roles import owners_for, touchable
from audit.record import differing, record

MOST_VARIABLES = 50


class VariablesField(forms.CharField):
    """Variables as lines of “name: value”, so that any number of them can be typed without JavaScript."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]  # text in, variables out
        if isinstance(value, dict):
            return value
        lines = [line for line in (value or "").splitlines() if line.strip()]
        if len(lines) > MOST_VARIABLES:
            raise ValidationError(f"Enter at most {MOST_VARIABLES} variables.")
        return dict(self._pair(line) for line in lines)

    def _pair(self, line: str) -> tuple[str, str]:
        title, colon, text = line.partition(":")
        name = variable_name(title)
        if not colon or not name:
            raise ValidationError(f"“{line.strip()[:40]}” is not a variable. Write it like this: city: Ipoh.")
        if title.strip().lower() in RESERVED:
            raise ValidationError(f"“{title.strip()}” has its own field above. Choose another name.")
        if len(text) > LONGEST_VALUE:
            raise ValidationError(f"The value of “{name}” is longer than {LONGEST_VALUE:,} characters.")
        return name, text.strip()

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def validate(self, value: Any) -> None:
        """Accept an empty value."""


class TagsField(forms.CharField):
    """Tags by name, separated by commas; new ones are created."""

    def prepare_value(self, value: Any) -> Any:
        """Return the names, separated by commas; a name with a comma in it is quoted, so that it stays one name."""
        if not isinstance(value, list):
            return value
        return ", ".join(f'"{tag}"' if "," in str(tag) else str(tag) for tag in value)

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]  # text in, names out
        names = next(csv.reader([" ".join((value or "").split())], skipinitialspace=True), [])
        tags = list(dict.fromkeys(name.strip() for name in names if name.strip()))
        if long := next((tag for tag in tags if len(tag) > LONGEST_TAG), ""):
            raise ValidationError(f"The tag “{long[:20]}…” is longer than {LONGEST_TAG} characters.")
        return tags

    def validate(self, value: Any) -> None:
        """Accept an empty list."""


def _choice(form: forms.BaseForm, name: str) -> "forms.ModelChoiceField[Any]":
    """Return the field with its type: a form knows its fields only as `Field`."""
    return cast("forms.ModelChoiceField[Any]", form.fields[name])


class RecipientForm(ModelForm[Recipient]):
    """The form of one recipient. A person who works for several owners chooses the owner when adding."""

    variables = VariablesField(
        label="Variables",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "placeholder": "city: Ipoh"}),
        help_text="One per line, as <code>name: value</code>. A message uses it as {{ name }}.",
    )
    tag_names = TagsField(
        label="Tags", required=False, help_text="Separate with commas. New tags are created when you save."
    )

    class Meta:
        model = Recipient
        fields = ("owner", "channel", "address", "name", "account")
        labels = {"account": "Reached by"}
        help_texts = {
            "address": "A phone number, group, e-mail address, room or profile, in any usual format.",
            "account": "Choose an account if only that one can reach this recipient, for example for a group.",
        }

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        accounts = touchable(Account.objects.filter(archived_at=None), user, Role.WRITE).defer("credentials")
        if self.instance._state.adding:
            self._offer_owners(user)
            self._offer_channels(accounts)
        else:
            del self.fields["owner"], self.fields["channel"]
            accounts = accounts.filter(channel=self.instance.channel, owner=self.instance.owner)
            self.initial["tag_names"] = [tag.name for tag in self.instance.tags.all()]
            self.initial["variables"] = self.instance.fields
        reached_by = _choice(self, "account")
        reached_by.queryset, reached_by.empty_label = accounts, "Any account"

    def _get_validation_exclusions(self) -> set[str]:
        """Return the excluded fields without owner and channel: the check for duplicates needs both."""
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # the stubs lack it
        return excluded - {"owner", "channel"}

    def _offer_owners(self, user: User) -> None:
        """Offer a choice of owners to people who work for several; else the owner is the user."""
        owners = owners_for(user, Role.WRITE)
        if len(owners[:2]) == 1:
            del self.fields["owner"]
            self.instance.owner = user
            return
        whose = _choice(self, "owner")
        whose.queryset, whose.initial, whose.empty_label = owners, user.pk, None

    def _offer_channels(self, accounts: QuerySet[Account]) -> None:
        """Offer the channels, and choose that of the first account beforehand."""
        field = cast("forms.ChoiceField", self.fields["channel"])
        field.choices = Channel.choices
        field.initial = accounts.order_by("pk").values_list("channel", flat=True).first() or Channel.WHATSAPP

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        account = cleaned.get("account")
        owner_id = cleaned["owner"].pk if cleaned.get("owner") else self.instance.owner_id
        channel = cleaned.get("channel") or self.instance.channel
        if account and (account.owner_id, account.channel) != (owner_id, channel):
            self.add_error(
                "account", "This account belongs to another channel or person. Choose another one."
            )
        self.instance.fields = cleaned.get("variables", self.instance.fields)
        return cleaned

    @transaction.atomic
    def save(self, commit: bool = True) -> Recipient:
        """Save the recipient with its tags, and record what changed."""
        added = self.instance._state.adding
        before = {} if added else told(Recipient.objects.get(pk=self.instance.pk))
        recipient = super().save(commit)
        owner = recipient.owner
        named = [
            Tag.objects.get_or_create(owner=owner, name=name)[0] for name in self.cleaned_data["tag_names"]
        ]
        recipient.tags.set(named)
        old, new = differing(before, told(recipient))
        if new:
            record("recipient.added" if added else "recipient.changed", recipient, before=old, after=new)
        return recipient


class ReasonForm(forms.Form):
    how = forms.CharField(
        label="Reason",
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "For example: asked by phone"}),
        help_text="Saved in the history with your name and the time.",
    )


class TagForm(forms.Form):
    name = forms.CharField(label="Name", max_length=LONGEST_TAG)


class MergeForm(forms.Form):
    into = forms.ModelChoiceField(queryset=Tag.objects.none(), label="Merge into", empty_label="Choose a tag")

    def __init__(self, *args: Any, tag: Tag, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = _choice(self, "into")
        others.queryset = Tag.objects.filter(owner=tag.owner_id).exclude(pk=tag.pk)


class TagAllForm(forms.Form):
    """The tag, and whether it is added or removed."""

    do = forms.ChoiceField(
        label="Action",
        choices=[("add", "Add the tag"), ("remove", "Remove the tag")],
        initial="add",
        widget=forms.RadioSelect,
    )
    name = forms.CharField(
        label="Tag", max_length=LONGEST_TAG, help_text="An existing tag, or the name of a new one."
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.known = touchable(Tag.objects.all(), user, Role.WRITE)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        name = " ".join(cleaned.get("name", "").split())
        if cleaned.get("do") == "remove" and name and not self.known.filter(name=name).exists():
            self.add_error("name", f"There is no tag “{name}”.")
        return cleaned

    def tag(self) -> Tag:
        """Return the user's own tag, else a team member's tag of that name, else a new one."""
        name = " ".join(self.cleaned_data["name"].split())
        mine = Tag.objects.filter(owner=self.user, name=name).first()
        return mine or self.known.filter(name=name).first() or tags.create(self.user, name)
