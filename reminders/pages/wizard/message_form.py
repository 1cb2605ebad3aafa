"""The form of the message. Every button submits the whole message, so nothing typed is lost.

The fields of a part are named by its place (`first-0-text`, `first-1-media_id`, `second-0-text`), and saving stores the
parts in this order. So saving twice is the same as saving once, and a part is moved by another order before saving.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from accounts.generics import ModelForm
from delivery.wordings import LETTERS, MOST_WORDINGS
from reminders import uploads
from reminders.drafts import WITH_SUBJECT
from reminders.message import MOST_CHARACTERS, MOST_PARTS, TypedPart, typed_of
from reminders.models import Media, Part, Reminder

Role = Part.Role
MOST_TEXT = 20_000
TOO_LONG = {"max_length": f"The text is too long. Shorten it to at most {MOST_TEXT:,} characters."}


class HeadForm(ModelForm[Reminder]):
    """The form of the name and, where the channel has one, the subject."""

    class Meta:
        model = Reminder
        fields = ("name", "subject")
        labels = {"name": "Name"}
        help_texts = {
            "name": "Only you and your team see it. Without one, the first words of the message are taken.",
            "subject": "Variables work here too.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.action not in WITH_SUBJECT:
            del self.fields["subject"]


class PartForm(forms.Form):
    """The form of one part: a text, or a file with its caption."""

    media_id = forms.IntegerField(required=False, widget=forms.HiddenInput)
    text = forms.CharField(
        required=False, max_length=MOST_TEXT, strip=False, widget=forms.Textarea, error_messages=TOO_LONG
    )

    def __init__(
        self,
        *args: Any,
        file: Media | None = None,
        number: int = 1,
        most: int = MOST_TEXT,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.file, self.most = file, most
        text = self.fields["text"]
        text.label = "Caption" if file else f"Text of part {number}"
        text.widget.attrs |= {"rows": 2 if file else 5}
        _count(text, most)
        for place, letter in enumerate(LETTERS[1:]):
            self._add_wording(place, letter)

    def _add_wording(self, place: int, letter: str) -> None:
        """Add the field of another wording, if it was typed or has to be shown."""
        name = f"other{place}"
        if self.add_prefix(name) not in self.data if self.is_bound else name not in self.initial:
            return
        field = forms.CharField(
            required=False, max_length=MOST_TEXT, strip=False, widget=forms.Textarea, error_messages=TOO_LONG
        )
        field.label = f"Wording {letter}"
        field.widget.attrs |= {"rows": 2 if self.file else 5}
        _count(field, self.most)
        self.fields[name] = field

    @property
    def wordings(self) -> list[forms.BoundField]:
        """Return the fields of the other wordings."""
        return [self[name] for name in self.fields if name.startswith("other")]

    @property
    def full(self) -> bool:
        """Return whether no more wordings can be added."""
        return len(self.wordings) >= MOST_WORDINGS - 1

    @property
    def typed(self) -> TypedPart:
        typed = self.cleaned_data if self.is_bound else self.initial
        texts = [typed.get(name, "").replace("\r\n", "\n") for name in self.fields if name != "media_id"]
        first, *others = [text for text in texts if text.strip()] or [""]
        return TypedPart(text=first, media=self.file, others=tuple(others))


def _count(field: forms.Field, most: int) -> None:
    """Let the page count the characters. The browser would cut a longer text silently; it is refused in words."""
    field.widget.attrs.pop("maxlength", None)
    field.widget.attrs["data-most"] = most


class MessageForm:
    """The form of the message and the second message: name, subject and parts, with typed values, else saved ones."""

    def __init__(
        self,
        reminder: Reminder,
        data: QueryDict | None = None,
        files: Mapping[str, "UploadedFile[Any]"] | None = None,
        *,
        blank: str = "",
        more: str = "",
    ) -> None:
        self.more = more  # the part that gets a field for another wording, as `first-0`
        self.reminder = reminder
        self.most = MOST_CHARACTERS.get((reminder.channel, reminder.action), MOST_TEXT)
        self.files = files or {}
        self.file_errors: dict[str, str] = {}
        self.too_large = False
        self.head = HeadForm(data, instance=reminder)
        self.parts = self._typed(data) if data is not None else self._saved()
        for role in Role:
            if blank == role or self._more(role) or (role is Role.FIRST and not self.parts[role]):
                another = {"other0": ""} if self._more(role) else {}
                self.parts[role].append(self._part(role, len(self.parts[role]), {"text": ""} | another))

    def is_valid(self) -> bool:
        checked = [self.head.is_valid(), *(part.is_valid() for part in self._all() if part.is_bound)]
        return all(checked)

    def typed(self, role: str) -> list[TypedPart]:
        """Return the parts of a message as typed, without empty texts."""
        typed = [part.typed for part in self.parts[Role(role)]]
        return [part for part in typed if part.media or part.text.strip()]

    def take_files(self) -> bool:
        """Store the uploaded files, each as a new last part; return whether all were accepted."""
        for role in Role:
            upload = self.files.get(f"{role}-file")
            if upload is None:
                continue
            try:
                media = uploads.store(upload, owner=self.reminder.owner)
            except uploads.BadUploadError as error:
                self.file_errors[role] = " ".join(error.messages)
                self.too_large = self.too_large or isinstance(error, uploads.TooLargeError)
            else:
                self.parts[role].append(self._part(role, len(self.parts[role]), {"text": ""}, media))
        return not self.file_errors

    def move(self, role: str, index: int, by: int) -> None:
        parts = self.parts[Role(role)]
        if 0 <= index < len(parts) and 0 <= index + by < len(parts):
            parts[index], parts[index + by] = parts[index + by], parts[index]

    def remove(self, role: str, index: int) -> None:
        if 0 <= index < len(self.parts[Role(role)]):
            del self.parts[Role(role)][index]

    def _more(self, role: Role) -> bool:
        """Return whether another wording was asked of a text that is still empty, and so not saved."""
        return self.more == f"{role}-{len(self.parts[role])}"

    def _all(self) -> list[PartForm]:
        return [part for parts in self.parts.values() for part in parts]

    def _saved(self) -> dict[Role, list[PartForm]]:
        made: dict[Role, list[PartForm]] = {role: [] for role in Role}
        for part in self.reminder.parts.select_related("media").order_by("role", "position"):
            role = Role(part.role)
            first, *others = typed_of(part).wordings
            initial = {"text": first} | {f"other{place}": text for place, text in enumerate(others)}
            if self.more == f"{role}-{len(made[role])}":
                initial[f"other{len(others)}"] = ""
            made[role].append(self._part(role, len(made[role]), initial, part.media))
        return made

    def _typed(self, data: QueryDict) -> dict[Role, list[PartForm]]:
        prefixes = {
            role: [
                prefix
                for prefix in (f"{role}-{index}" for index in range(MOST_PARTS + 1))
                if f"{prefix}-text" in data
            ]
            for role in Role
        }
        named = {
            prefix: _id(data.get(f"{prefix}-media_id", "")) for role in Role for prefix in prefixes[role]
        }
        ids = {pk for pk in named.values() if pk}
        media = Media.objects.filter(owner=self.reminder.owner_id).in_bulk(ids) if ids else {}
        return {
            role: [
                PartForm(data, prefix=prefix, number=number, file=media.get(named[prefix]), most=self.most)
                for number, prefix in enumerate(prefixes[role], 1)
            ]
            for role in Role
        }

    def _part(self, role: Role, index: int, initial: dict[str, str], media: Media | None = None) -> PartForm:
        values = {**initial, "media_id": media.pk if media else None}
        return PartForm(
            prefix=f"{role}-{index}", number=index + 1, initial=values, file=media, most=self.most
        )


def _id(text: str) -> int:
    """Return the text as a number that can be a key; 0 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
