"""The filters of the lists of runs and attempts. They are in the address, so a link shows the same list again."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.models import Account, Recipient, User
from accounts.recipients.search import matching
from accounts.roles import visible
from activity.models import Attempt
from delivery.models import Run, RunAccount, RunTarget, shown_as
from delivery.states import RunStatus

ARCHIVED = "archived"
STATUSES = ("", *(status.value for status in RunStatus), ARCHIVED)
OUTCOMES = ("", *Attempt.Outcome.values)
MOST_ACCOUNTS = 200  # in the list to choose from
MOST_FOUND = 100  # recipients of one search, and their latest targets

LAST_DAY = date(9999, 12, 30)  # the last one with a day after it in every zone

# The actions of each channel: with account and action, the database can use the index `attempt_limits`.
ACTIONS = {
    "whatsapp": ("message",),
    "matrix": ("message",),
    "email": ("email",),
    "linkedin": ("message", "connection_request", "inmail"),
}


class ActivityFilters(forms.Form):
    """The filters that both lists have: account, days and words. A day is a day of the reader's zone."""

    account = forms.ModelChoiceField(Account.objects.none(), required=False, empty_label="All accounts")
    since = forms.DateField(required=False, label="From")
    until = forms.DateField(required=False, label="To")
    q = forms.CharField(required=False, max_length=200)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        accounts = visible(Account.objects.only("name", "channel"), user)
        self.fields["account"].queryset = accounts  # type: ignore[attr-defined]
        offered = accounts.filter(archived_at=None).order_by("name")[:MOST_ACCOUNTS]
        self.fields["account"].choices = [  # type: ignore[attr-defined]
            ("", "All accounts"),
            *((account.pk, account.name) for account in offered),
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        since, until = given.get("since"), given.get("until")
        if since and until and since > until:
            self.add_error("until", "This day is before the first one.")
        return given

    @property
    def given(self) -> dict[str, Any]:
        """Return the valid filters. An invalid one shows its error and filters nothing."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}

    def between(self, rows: QuerySet[Any], field: str) -> QuerySet[Any]:
        if since := self.given.get("since"):
            rows = rows.filter(**{f"{field}__gte": midnight(since)})
        if until := self.given.get("until"):
            rows = rows.filter(**{f"{field}__lt": next_day(until)})
        return rows


class RunFilters(ActivityFilters):
    """The filters of the list of runs."""

    kind = forms.ChoiceField(required=False, choices=[("", "All kinds"), *Run.Kind.choices])

    def runs(self, rows: QuerySet[Run], status: str) -> QuerySet[Run]:
        """Return the runs of one tab; an unknown tab shows all. Archived runs have their own tab."""
        rows = rows.filter(archived_at__isnull=status != ARCHIVED)
        if status in STATUSES and status not in ("", ARCHIVED):
            rows = rows.filter(shown_as(status))
        rows = self.between(rows, "fired_at")
        if account := self.given.get("account"):
            rows = rows.filter(Exists(RunAccount.objects.filter(run=OuterRef("pk"), account=account)))
        if kind := self.given.get("kind"):
            rows = rows.filter(kind=kind)
        if words := self.given.get("q"):
            rows = rows.filter(name__icontains=words)
        return rows


class AttemptFilters(ActivityFilters):
    """The filters of the list of attempts."""

    def attempts(self, rows: QuerySet[Attempt], outcome: str, user: User) -> QuerySet[Attempt]:
        rows = self.between(rows, "at")
        if outcome and outcome in OUTCOMES:
            rows = rows.filter(outcome=outcome)
        if account := self.given.get("account"):
            rows = rows.filter(account=account, action__in=ACTIONS[account.channel])
        if words := self.given.get("q"):
            rows = rows.filter(target__in=_targets_of(words, user))
        return rows


def _targets_of(words: str, user: User) -> list[int]:
    """Return the latest targets of the recipients that the words find."""
    # Without an order: with one, the planner would not use the index `recipient_search`.
    found = matching(visible(Recipient.objects.order_by(), user), words).values_list("pk", flat=True)[
        :MOST_FOUND
    ]
    targets = RunTarget.objects.filter(recipient__in=list(found)).order_by("-run_id")
    return list(targets.values_list("pk", flat=True)[:MOST_FOUND])


def midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


def next_day(day: date) -> datetime:
    """Return the end of a day of the reader's zone."""
    return midnight(min(day, LAST_DAY) + timedelta(days=1))
