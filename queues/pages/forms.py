"""The forms of queues and items, of bulk changes, and of imports."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from accounts.generics import ModelForm
from accounts.models import Account, Role, User
from accounts.roles import owners_for
from accounts.zones import ChecksZone, common_zones
from delivery.models import TargetContent
from delivery.pages.days_field import SendDaysField
from queues.entries import LONGEST, Entry
from queues.imports.columns import ADDRESS, MEANINGS, ONCE, TEXT, VARIABLE
from queues.models import Item, Queue, QueueImport
from queues.senders import accounts_of
from reminders.models import Media
from reminders.moments import instant_of

HOURS = [(hour, f"{hour:02}:00") for hour in range(25)]


class WallTimeField(forms.DateTimeField):
    """A local time without a zone: the queue has the zone."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")

    def to_python(self, value: Any) -> datetime | None:
        if not value:
            return None
        try:
            return datetime.fromisoformat(str(value)).replace(tzinfo=None)
        except ValueError:
            raise ValidationError("Give a date and a time.") from None


class QueueForm(ChecksZone, ModelForm[Queue]):
    """The settings of a queue; the accounts are those of one owner."""

    senders = forms.ModelMultipleChoiceField(
        queryset=Account.objects.none(),
        label="Accounts",
        widget=forms.CheckboxSelectMultiple,
        help_text="All on one channel. An item that names no sender gets one of them.",
        error_messages={"required": "Choose at least one account."},
    )
    window_start_hour = forms.TypedChoiceField(label="From", choices=HOURS[:24], coerce=int)
    window_end_hour = forms.TypedChoiceField(label="Until", choices=HOURS[1:], coerce=int)
    send_days = SendDaysField(label="On these days")

    class Meta:
        model = Queue
        fields = (
            *("name", "pace", "subject", "text", "zone", "window_start_hour", "window_end_hour", "send_days"),
            "priority",
        )
        labels = {
            "pace": "Items are sent",
            "subject": "Subject for items without one",
            "text": "Text for items without one",
            "zone": "Time zone",
        }
        help_texts = {
            "pace": "At planned times: items leave at their times, overdue ones slowly, every 3 to 5 minutes. At each "
            "sender's own pace: planned times are not used, only the limits of the account.",
            "text": "May have variables, such as {{ name }}. A change counts for items added from then on.",
            "zone": "Planned times without a zone are in this zone.",
        }
        widgets = {
            "pace": forms.RadioSelect,
            "text": forms.Textarea(attrs={"rows": 5}),
            "zone": forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        }

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zones = common_zones()
        accounts = Account.objects.filter(archived_at=None, owner__in=owners_for(user, Role.SEND))
        if self.instance.pk:
            accounts = accounts.filter(owner=self.instance.owner, channel=self.instance.channel)
            self.initial["senders"] = [account.pk for account in accounts_of(self.instance)]
        chosen = cast("forms.ModelMultipleChoiceField[Account]", self.fields["senders"])
        chosen.queryset = accounts.defer("credentials").order_by("channel", "name")
        self.fields["priority"].widget.attrs |= {"min": -100, "max": 100}

    @property
    def settings(self) -> Mapping[str, Any]:
        return {name: self.cleaned_data[name] for name in self.Meta.fields}

    def _post_clean(self) -> None:
        """Leave the checks of the row to the action, which every door calls."""


def files_of(content: TargetContent, queue: Queue) -> list[int]:
    """Return the files of an item in their order: its page changes its text, and keeps them."""
    hashes = [str(part["sha256"]) for part in content.parts or () if part.get("sha256")]
    known = dict(Media.objects.filter(owner=queue.owner_id, sha256__in=hashes).values_list("sha256", "pk"))
    return [known[each] for each in hashes if each in known]


class ItemForm(forms.Form):
    """One item as a person types it."""

    address = forms.CharField(label="Recipient's address", max_length=255)
    name = forms.CharField(label="Name", max_length=200, required=False, help_text="For a new recipient.")
    subject = forms.CharField(label="Subject", max_length=LONGEST, required=False)
    text = forms.CharField(
        label="Text",
        max_length=LONGEST,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Without a text, the item says that of its queue.",
    )
    planned_at = WallTimeField(label="Not before", required=False)
    sender = forms.ChoiceField(label="Sender", required=False)
    priority = forms.TypedChoiceField(label="Priority", choices=Item.Priority, coerce=int, initial=0)

    def __init__(self, *args: Any, queue: Queue, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = queue
        names = [(str(account.pk), str(account)) for account in accounts_of(queue)]
        self.fields["sender"].choices = [("", "Any of the queue"), *names]  # type: ignore[attr-defined]
        self.fields["planned_at"].help_text = f"In {queue.zone}. Empty: as soon as limits allow."

    def entry(self, own_id: str, *, item: Item | None = None) -> Entry:
        """Return the entry that the person has typed."""
        given = self.cleaned_data
        planned = given["planned_at"]
        content = item.content if item is not None else None
        return Entry(
            own_id=own_id,
            address=given["address"],
            name=given["name"],
            subject=given["subject"],
            text=given["text"],
            values={name: str(value) for name, value in content.values.items()} if content else {},
            media=files_of(content, self.queue) if content else (),
            planned_at=instant_of(planned, self.queue.zone) if planned else None,
            sender=given["sender"],
            priority=given["priority"],
        )


class ReplanForm(forms.Form):
    planned_at = WallTimeField(label="Send them not before", required=False)


class UploadForm(forms.Form):
    file = forms.FileField(
        label="File",
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.txt,.xlsx"}),
        help_text="CSV or XLSX, one item per row: recipient, subject, text, planned time, sender.",
    )

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > settings.IMPORT_MAX_MB * 1024**2:
            raise ValidationError(
                f"The file is too large (limit: {settings.IMPORT_MAX_MB} MB). Split it into parts."
            )
        return file


class ColumnsForm(forms.Form):
    """The content of each column of a file."""

    header = forms.BooleanField(label="The first row contains the column titles", required=False)

    def __init__(self, *args: Any, job: QueueImport, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.job, self.initial = job, {"header": job.header}
        for place, column in enumerate(job.columns):
            self.fields[f"means_{place}"] = forms.ChoiceField(
                label=f"Content of “{column['title']}”",
                choices=MEANINGS,
                required=False,
                initial=column["means"],
            )

    def rows(self, sample: list[list[str]]) -> list[dict[str, Any]]:
        body = sample[1:] if self.job.header else sample
        return [
            {
                "title": column["title"],
                "samples": [row[place] for row in body if place < len(row) and row[place].strip()][:3],
                "means": self[f"means_{place}"],
            }
            for place, column in enumerate(self.job.columns)
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        means = [cleaned.get(f"means_{place}", "") for place in range(len(self.job.columns))]
        if means.count(ADDRESS) != 1:
            self.add_error(None, "Choose exactly one column for the recipient's address.")
        labels = dict(MEANINGS)
        for what in ONCE:
            if what != ADDRESS and means.count(what) > 1:
                self.add_error(None, f"Choose only one column for: {labels[what].lower()}.")
        if TEXT not in means and not self.job.queue.text:
            self.add_error(None, "Choose a column for the text, or give the queue a text for all items.")
        return cleaned

    def save(self) -> None:
        job = self.job
        job.header = self.cleaned_data["header"]
        for place, column in enumerate(job.columns):
            column["means"] = self.cleaned_data[f"means_{place}"]
            if column["means"] == VARIABLE and not column["variable"]:
                column["variable"] = f"column_{place + 1}"
        job.save(update_fields=["header", "columns"])
