"""The audit log as a page with filters, and as a file."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.access import user_of
from accounts.downloads import csv_response
from accounts.models import Recipient, User
from accounts.paging import page_of
from accounts.roles import visible
from activity.pages.runs.filters import LAST_DAY, midnight, next_day
from audit.actions import ACTIONS
from audit.models import Entry
from audit.origin import Door
from audit.record import record

# The things that have a page of their own.
PAGES = {
    "account": "accounts:page",
    "recipient": "recipients:recipient",
    "reminder": "reminders:page",
    "run": "runs:page",
    "webhook": "webhooks:page",
}
# The kinds of actions whose plural is not their name with an s.
KINDS = {
    "address": "own addresses",
    "admin": "administration",
    "browser": "notifications in browsers",
    "calendar": "calendar",
    "data": "backups and old details",
    "items": "items of queues",
    "key": "API keys",
    "keys": "encryption keys",
    "media": "files",
    "message": "single messages",
    "notices": "addresses for notifications",
    "person": "people and logins",
    "recipients": "several recipients",
    "sending": "stopping and starting of all sending",
    "team": "team",
}
PEOPLE_COME_BY = {Door.PAGE, Door.ADMIN, Door.KEY, Door.PUSH, Door.LINK}
TITLES = ("at", "who", "what", "thing", "number", "name", "owner", "door", "through", "address")
SIDES = ("before", "after", "note")
CHUNK = 2_000


class AuditFilters(forms.Form):
    """The filters of the log: who, what, which thing, by which door, from which day to which."""

    who = forms.CharField(required=False, max_length=150)
    what = forms.ChoiceField(required=False)
    thing = forms.RegexField(
        r"^\s*[a-z]+(\s+\d{1,18})?\s*$",
        required=False,
        max_length=60,
        error_messages={"invalid": "Write a kind of thing, with or without its number: run 12."},
    )
    door = forms.ChoiceField(required=False, choices=[("", "From anywhere"), *Door.choices])
    since = forms.DateField(required=False, label="From", input_formats=["%Y-%m-%d"])
    until = forms.DateField(required=False, label="To", input_formats=["%Y-%m-%d"])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = sorted({name.partition(".")[0] for name in ACTIONS})
        self.fields["what"].choices = [  # type: ignore[attr-defined]
            ("", "Everything"),
            *((kind, f"All changes: {KINDS.get(kind, f'{kind}s')}") for kind in kinds),
            *((name, words[0].upper() + words[1:]) for name, words in sorted(ACTIONS.items())),
        ]

    def entries(self, rows: QuerySet[Entry]) -> QuerySet[Entry]:
        """Return the rows that match; an invalid filter shows its error and filters nothing."""
        self.is_valid()
        given: Mapping[str, Any] = {name: value for name, value in self.cleaned_data.items() if value}
        if who := given.get("who"):
            rows = rows.filter(actor_name=who.strip())
        if what := given.get("what"):
            rows = rows.filter(action=what) if "." in what else rows.filter(action__startswith=f"{what}.")
        if thing := given.get("thing"):
            kind, *number = thing.split()
            rows = rows.filter(thing_type=kind, **({"thing_id": int(number[0])} if number else {}))
        if door := given.get("door"):
            rows = rows.filter(door=door)
        if since := given.get("since"):
            rows = rows.filter(at__gte=midnight(min(since, LAST_DAY)))
        if until := given.get("until"):
            rows = rows.filter(at__lt=next_day(until))
        return rows


@login_required
@require_safe
def audit_list(request: HttpRequest) -> HttpResponse:
    filters, rows = _asked(request)
    page = page_of(rows, request.GET, newest_first=True)
    show_things(list(page.rows), user_of(request))
    narrowed = any(request.GET.get(name) for name in filters.fields)
    return render(request, "activity/audit.html", {"page": page, "filters": filters, "narrowed": narrowed})


@login_required
@require_safe
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    _, rows = _asked(request)
    record("export.made", owner_id=user_of(request).pk, after={"of": "the audit log", **request.GET.dict()})
    return csv_response(request, _lines(rows), "audit")


def show_things(entries: list[Entry], user: User) -> None:
    """Give each entry the name of its thing, and the address of its page: recipients are named as they are now."""
    numbers = {entry.thing_id or 0 for entry in entries if entry.thing_type == "recipient"}
    known = visible(Recipient.objects.filter(pk__in=numbers), user)
    names = {recipient.pk: str(recipient) for recipient in known} if numbers else {}
    for entry in entries:
        if entry.thing_type == "recipient":
            entry.thing_name = names.get(entry.thing_id or 0, f"recipient {entry.thing_id}")
        entry.page = PAGES.get(entry.thing_type, "")  # type: ignore[attr-defined]  # for the template
        entry.lines = _changes(entry)  # type: ignore[attr-defined]
        entry.nobody = "Somebody" if entry.door in PEOPLE_COME_BY else entry.get_door_display()  # type: ignore[attr-defined]


def _asked(request: HttpRequest) -> tuple[AuditFilters, QuerySet[Entry]]:
    filters = AuditFilters(request.GET)
    rows = filters.entries(visible(Entry.objects.all(), request.user))
    return filters, rows.select_related("owner", "personal")


def _sides(entry: Entry) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Return before, after and the note, from where they lie."""
    kept = getattr(entry, "personal", None) or entry
    return kept.before or {}, kept.after or {}, kept.note


def _changes(entry: Entry) -> list[tuple[str, Any, Any]]:
    """Return each value that changed, with both of its sides."""
    before, after, _ = _sides(entry)
    names = list(dict.fromkeys([*before, *after]))
    return [(name.replace("_", " "), before.get(name), after.get(name)) for name in names]


def _lines(rows: QuerySet[Entry]) -> Iterator[tuple[object, ...]]:
    yield (*TITLES, *SIDES)
    for entry in rows.order_by("pk").iterator(CHUNK):
        before, after, note = _sides(entry)
        yield (
            *(entry.at, entry.actor_name, entry.words, entry.thing_type, entry.thing_id, entry.thing_name),
            *(entry.owner or "", entry.get_door_display(), entry.via, entry.address),
            *(before or "", after or "", note),
        )
