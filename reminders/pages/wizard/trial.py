"""The card "Send a test" of the last step: a test to the user, and the code that confirms the user's address."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts import own_addresses
from accounts.access import user_of
from accounts.models import Account, Recipient, User
from delivery.trial import store
from delivery.trial.store import Trial, TrialState
from reminders.drafts import NotPossibleError
from reminders.models import Reminder
from reminders.pages.editing import edited
from reminders.trial import (
    SAMPLE_VALUES,
    NotConfirmedError,
    TrialInput,
    ask_for_code,
    code_is_under_way,
    offered,
    try_out,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The content of the card: the typed values, their error, and the last test."""

    given: TrialInput
    people: Sequence[Recipient] = field(default_factory=list)
    error: str = ""
    needs_code: bool = False  # the address is to be confirmed
    code_sent: bool = False  # and a code is under way
    last: Trial | None = None
    looked_up: bool = False  # a trial was asked for, and may be forgotten
    sample: str = SAMPLE_VALUES


@login_required
@require_GET
def test_result(request: HttpRequest, pk: int, trial: str) -> HttpResponse:
    """Show the result of a test; the page asks until it is known."""
    found = _trial(edited(request, pk), trial)
    return render(request, "reminders/wizard/_test_result.html", {"test": found})


def answer(request: HttpRequest, reminder: Reminder) -> Trial | Form:
    """Send the test or the code; return the form with an error if that is not possible."""
    given = TrialInput(
        account_id=request.POST.get("from", ""),
        address=request.POST.get("to", ""),
        values=request.POST.get("as", ""),
    )
    by = user_of(request)
    try:
        if request.POST.get("do") == "code":
            return ask_for_code(reminder, given, by=by)
        return try_out(reminder, given, by=by, code=request.POST.get("code", "").strip())
    except NotPossibleError as error:
        under_way = code_is_under_way(reminder, given, by=by)
        return Form(
            given=given,
            people=offered(reminder),
            error=str(error),
            needs_code=isinstance(error, NotConfirmedError) or under_way,
            code_sent=under_way,
        )


def form_of(request: HttpRequest, reminder: Reminder, accounts: Sequence[Account]) -> Form:
    """Return the card as the page first shows it, or with the test that the address of the page names."""
    asked = request.GET.get("test", "")
    trial = _trial(reminder, asked)
    code = trial is not None and trial.kind == "code" and not _is_confirmed(trial)
    return Form(
        given=replace(_first_input(trial, accounts, user_of(request)), values=request.GET.get("as", "")),
        people=offered(reminder),
        needs_code=code,
        code_sent=code and trial is not None and trial.state is not TrialState.FAILED,
        last=trial,
        looked_up=bool(asked),
    )


def _first_input(trial: Trial | None, accounts: Sequence[Account], by: User) -> TrialInput:
    """Return the values of the last test, else a confirmed address, else the account's own address."""
    if trial is not None:
        return TrialInput(account_id=str(trial.account_id), address=trial.address)
    confirmed = own_addresses.confirmed_of(accounts, by)
    if (first := next((account for account in accounts if account.pk in confirmed), None)) is not None:
        return TrialInput(account_id=str(first.pk), address=confirmed[first.pk])
    return TrialInput(address=next((account.own_address for account in accounts), ""))


def _is_confirmed(trial: Trial) -> bool:
    return own_addresses.is_confirmed(trial.account_id, trial.person_id, trial.address)


def _trial(reminder: Reminder, trial_id: str) -> Trial | None:
    found = store.find(trial_id) if trial_id else None
    return found if found is not None and found.reminder_id == reminder.pk else None
