"""The forms of an import: choose a file, then say what each column contains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.forms import BoundField

from accounts.generics import ModelForm
from accounts.imports.columns import ADDRESS, IGNORE, NAME, RESERVED, TAGS, VARIABLE, variable_name
from accounts.models import Account, Import, Role, User
from accounts.pages.recipient_forms import TagsField
from accounts.roles import owners_for

MEANINGS = [
    (IGNORE, "Ignore"),
    (ADDRESS, "Address"),
    (NAME, "Name"),
    (TAGS, "Tags"),
    (VARIABLE, "Variable"),
]


class UploadForm(forms.Form):
    owner = forms.ModelChoiceField(
        queryset=User.objects.none(), label="Owner of the recipients", empty_label=None
    )
    file = forms.FileField(
        label="File",
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.txt,.xlsx"}),
        help_text="CSV or XLSX, one recipient per row. CSV columns may be separated by commas, semicolons or tabs.",
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        owners = owners_for(user, Role.WRITE)
        if len(owners[:2]) == 1:
            del self.fields["owner"]
        else:
            whose = cast("forms.ModelChoiceField[User]", self.fields["owner"])
            whose.queryset, whose.initial = owners, user.pk

    @property
    def whose(self) -> User:
        return self.cleaned_data.get("owner") or self.user

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > settings.IMPORT_MAX_MB * 1024**2:
            raise ValidationError(
                f"The file is too large (limit: {settings.IMPORT_MAX_MB} MB). Split it into parts."
            )
        return file


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRow:
    """A column as the page shows it: title, example cells, and the two fields for its content."""

    title: str
    samples: Sequence[str]
    means: BoundField
    variable: BoundField


class ColumnsForm(ModelForm[Import]):
    tag_names = TagsField(
        label="Tags for all recipients",
        required=False,
        help_text="Separate with commas. New tags are created when the import is saved.",
    )

    class Meta:
        model = Import
        fields = ("channel", "region", "header", "on_existing", "account")
        labels = {"on_existing": "Already in your list", "header": "The first row contains the column titles"}
        widgets = {"on_existing": forms.RadioSelect}
        help_texts = {
            "on_existing": "An update changes the name and variables to those in the file, and unarchives archived "
            "recipients. People who opted out stay opted out.",
            "account": "Choose an account if only that one can reach them, for example for groups.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reached_by = cast("forms.ModelChoiceField[Account]", self.fields["account"])
        reached_by.queryset = Account.objects.filter(owner=self.instance.owner, archived_at=None).defer(
            "credentials"
        )
        reached_by.empty_label = "Any account"
        self.initial["tag_names"] = self.instance.tags
        for place, column in enumerate(self.instance.columns):
            self.fields[f"means_{place}"] = forms.ChoiceField(
                label=f"Content of “{column['title']}”",
                choices=MEANINGS,
                required=False,
                initial=column["means"],
            )
            self.fields[f"variable_{place}"] = forms.CharField(
                label=f"Variable for “{column['title']}”",
                required=False,
                max_length=40,
                initial=column["variable"] or variable_name(column["title"]),
            )

    def column_rows(self, sample: Sequence[Sequence[str]]) -> list[ColumnRow]:
        body = sample[1:] if self.instance.header else sample
        return [
            ColumnRow(
                title=column["title"],
                samples=[row[place] for row in body if place < len(row) and row[place].strip()][:3],
                means=self[f"means_{place}"],
                variable=self[f"variable_{place}"],
            )
            for place, column in enumerate(self.instance.columns)
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        places = range(len(self.instance.columns))
        means = [cleaned.get(f"means_{place}", "") for place in places]
        if means.count(ADDRESS) != 1:
            self.add_error(None, "Choose exactly one column for the address.")
        for what, word in ((NAME, "name"), (TAGS, "tags")):
            if means.count(what) > 1:
                self.add_error(None, f"Choose only one column for the {word}.")
        for place in places:
            if means[place] == VARIABLE:
                self._clean_variable(cleaned, place)
        account = cleaned.get("account")
        if account and account.channel != cleaned.get("channel"):
            self.add_error("account", "This account belongs to another channel.")
        return cleaned

    def _clean_variable(self, cleaned: dict[str, Any], place: int) -> None:
        key = f"variable_{place}"
        name = cleaned[key] = variable_name(cleaned.get(key, ""))
        earlier = [cleaned[f"variable_{n}"] for n in range(place) if cleaned.get(f"means_{n}") == VARIABLE]
        if not name:
            self.add_error(key, "Enter a name for the variable.")
        elif name.rstrip("_") in RESERVED or name in earlier:
            self.add_error(key, f"“{name}” is already used. Choose another name.")

    def save(self, commit: bool = True) -> Import:
        """Save only the fields of this form: the import may have continued meanwhile."""
        job = self.instance
        job.tags = self.cleaned_data["tag_names"]
        job.columns = [
            column
            | {
                "means": self.cleaned_data[f"means_{place}"],
                "variable": self.cleaned_data[f"variable_{place}"]
                if self.cleaned_data[f"means_{place}"] == VARIABLE
                else "",
            }
            for place, column in enumerate(job.columns)
        ]
        if commit:
            job.save(update_fields=[*self.Meta.fields, "tags", "columns"])
        return job
