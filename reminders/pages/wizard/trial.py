"""The card "Send a test" of the last step: a test to the user, and the code that confirms the user's address."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts import own_addresses
from accounts.access import touched, user_of
from accounts.models import Account, Recipient, User
from delivery.trial import tickets
from delivery.trial.tickets import Ticket, TicketState
from reminders.drafts import NotPossibleError
from reminders.models import Reminder
from reminders.trial import (
    SAMPLE_VALUES,
    NotConfirmedError,
    Wish,
    ask_for_code,
    code_is_under_way,
    offered,
    try_out,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The content of the card: the typed values, their error, and the last test."""

    wish: Wish
    people: Sequence[Recipient] = field(default_factory=list)
    error: str = ""
    needs_code: bool = False  # the address is to be confirmed
    code_sent: bool = False  # and a code is under way
    ticket: Ticket | None = None
    looked_up: bool = False  # a ticket was asked for, and may be forgotten
    sample: str = SAMPLE_VALUES


@login_required
@require_GET
def test_result(request: HttpRequest, pk: int, ticket: str) -> HttpResponse:
    """Show the result of a test; the page asks until it is known."""
    found = _ticket(touched(Reminder.objects.select_related("owner"), request, pk), ticket)
    return render(request, "reminders/wizard/_test_result.html", {"test": found})


def answer(request: HttpRequest, reminder: Reminder) -> Ticket | Form:
    """Send the test or the code; return the form with an error if that is not possible."""
    wish = Wish(
        account_id=request.POST.get("from", ""),
        address=request.POST.get("to", ""),
        values=request.POST.get("as", ""),
    )
    by = user_of(request)
    try:
        if request.POST.get("do") == "code":
            return ask_for_code(reminder, wish, by=by)
        return try_out(reminder, wish, by=by, code=request.POST.get("code", "").strip())
    except NotPossibleError as error:
        under_way = code_is_under_way(reminder, wish, by=by)
        return Form(
            wish=wish,
            people=offered(reminder),
            error=str(error),
            needs_code=isinstance(error, NotConfirmedError) or under_way,
            code_sent=under_way,
        )


def form_of(request: HttpRequest, reminder: Reminder, accounts: Sequence[Account]) -> Form:
    """Return the card as the page first shows it, or with the test that the address of the page names."""
    asked = request.GET.get("test", "")
    ticket = _ticket(reminder, asked)
    code = ticket is not None and ticket.kind == "code" and not _is_confirmed(ticket)
    return Form(
        wish=replace(_first_wish(ticket, accounts, user_of(request)), values=request.GET.get("as", "")),
        people=offered(reminder),
        needs_code=code,
        code_sent=code and ticket is not None and ticket.state is not TicketState.FAILED,
        ticket=ticket,
        looked_up=bool(asked),
    )


def _first_wish(ticket: Ticket | None, accounts: Sequence[Account], by: User) -> Wish:
    """Return the values of the last test, else a confirmed address, else the account's own address."""
    if ticket is not None:
        return Wish(account_id=str(ticket.account_id), address=ticket.address)
    confirmed = own_addresses.confirmed_of(accounts, by)
    if (first := next((account for account in accounts if account.pk in confirmed), None)) is not None:
        return Wish(account_id=str(first.pk), address=confirmed[first.pk])
    return Wish(address=next((account.own_address for account in accounts), ""))


def _is_confirmed(ticket: Ticket) -> bool:
    return own_addresses.is_confirmed(ticket.account_id, ticket.person_id, ticket.address)


def _ticket(reminder: Reminder, ticket_id: str) -> Ticket | None:
    found = tickets.find(ticket_id) if ticket_id else None
    return found if found is not None and found.reminder_id == reminder.pk else None
