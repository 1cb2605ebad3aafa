"""The forms of a source: how it is reached, and what its columns mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet

from queues.models import Queue, Source
from queues.sources.manage import Access, Found
from queues.sources.mapping import LABELS, Columns, Means, Tells, columns_of, guess, may_tell
from queues.sources.tables import Column, Schema

LONGEST_SECRET = 10_000
HELP: Mapping[str, str] = {
    Means.OWN_ID: "The name by which Paceline knows a row again. It must not change, and no two rows may share it.",
    Means.ADDRESS: "An e-mail address, a phone number, a LinkedIn profile or a Matrix id, as the queue sends.",
    Means.NAME: "For recipients who are new to Paceline.",
    Means.TEXT: "Without one, each item says the text of its queue.",
    Means.PLANNED: "The row is sent no sooner. Empty: as soon as limits allow.",
    Means.SENDER: "The name of the account. Empty: Paceline chooses.",
    Means.PRIORITY: "Low, normal or high.",
    Means.FILES: "A row with a file here is not taken: files of a table cannot be sent.",
    Means.READY: "Only rows with a tick or a word like “yes” here are taken. Choose one if people write in the table.",
    Tells.PLANNED_FOR: "When it will be sent: later than planned where limits or delivery hours do not allow it.",
    Tells.ERROR: "Why a row was not taken, moved, not sent or returned.",
}


class AccessForm(forms.Form):
    """The place of the table, and the secret that opens it."""

    queue = forms.ModelChoiceField(Queue.objects.none(), label="Queue", empty_label=None)
    kind = forms.ChoiceField(label="Service", choices=Source.Kind.choices, widget=forms.RadioSelect)
    address = forms.CharField(
        label="Address",
        max_length=500,
        help_text="Copy it from the browser: the page of the Notion database, or of the Google sheet.",
    )
    secret = forms.CharField(
        label="Token or key",
        max_length=LONGEST_SECRET,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text="Notion: the secret of an integration. Google: the JSON file of a service account, as text.",
    )
    table = forms.ChoiceField(label="Table", required=False)

    def __init__(self, *args: Any, queues: "QuerySet[Queue]", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["queue"].queryset = queues  # type: ignore[attr-defined]
        self.offers_tables = False
        self.fields["table"].choices = [("", "")]  # type: ignore[attr-defined]
        # Any text: which tables there are is asked of the service.
        self.fields["table"].valid_value = lambda _: True  # type: ignore[attr-defined]

    @property
    def given(self) -> Access:
        data = self.cleaned_data
        return Access(kind=data["kind"], address=data["address"], secret=data["secret"])

    def offer(self, found: Sequence[Found]) -> None:
        """Let the person choose among several tables."""
        self.offers_tables = True
        self.fields["table"].choices = [(each.key, each.title) for each in found]  # type: ignore[attr-defined]


class SecretForm(forms.Form):
    """A new secret for a source."""

    secret = forms.CharField(
        label="New token or key",
        max_length=LONGEST_SECRET,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
    )


class ColumnsForm(forms.Form):
    """A choice of a column for each meaning, from the columns that the table has now."""

    every_minutes = forms.IntegerField(
        label="Read every … minutes", min_value=1, max_value=1440, help_text="1 to 1440."
    )

    def __init__(self, *args: Any, source: Source, schema: Schema, **kwargs: Any) -> None:
        self.source, self.schema = source, schema
        chosen = columns_of(source.mapping) if source.mapping else self._guess()
        kwargs["initial"] = _initial(chosen) | {"every_minutes": source.every_minutes}
        super().__init__(*args, **kwargs)
        for means in Means:
            self.fields[means] = self._field(means, schema.columns)
        self.fields["variables"] = forms.MultipleChoiceField(
            label="Variables",
            required=False,
            choices=[(column.id, column.title) for column in schema.columns],
            widget=forms.CheckboxSelectMultiple,
            help_text="The text can use their values: a column “First name” is {{ first_name }}.",
        )
        for tells in Tells:
            self.fields[tells] = self._field(tells, [c for c in schema.columns if may_tell(c, tells)])

    def _guess(self) -> Columns:
        return guess(self.schema, with_own_id=self.source.kind == Source.Kind.SHEET)

    def _field(self, name: Means | Tells, offered: Sequence[Column]) -> forms.ChoiceField:
        needed = name is Means.ADDRESS or (name is Means.OWN_ID and self.source.kind == Source.Kind.SHEET)
        none = "Choose one" if needed else "None"
        if name is Means.OWN_ID and not needed:
            none = "The page itself"
        return forms.ChoiceField(
            label=LABELS[name],
            required=False,
            choices=[("", none), *((column.id, column.title) for column in offered)],
            help_text=HELP.get(name, ""),
        )

    @property
    def read(self) -> list[forms.BoundField]:
        return [self[means] for means in Means]

    @property
    def told(self) -> list[forms.BoundField]:
        return [self[tells] for tells in Tells]

    @property
    def columns(self) -> Columns:
        """Return what was chosen."""
        data = self.cleaned_data
        return Columns(
            reads={means: data[means] for means in Means if data[means]},
            tells={tells: data[tells] for tells in Tells if data[tells]},
            variables=tuple(data["variables"]),
            titles={column.id: column.title for column in self.schema.columns},
        )


def _initial(chosen: Columns) -> dict[str, Any]:
    found: dict[str, Any] = {str(means): key for means, key in chosen.reads.items()}
    found |= {str(tells): key for tells, key in chosen.tells.items()}
    return found | {"variables": list(chosen.variables)}
