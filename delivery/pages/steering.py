"""Actions of a person on an account: each is a POST that calls one function and shows the result."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import seen, touched, user_of
from accounts.approvals import strictness
from accounts.models import Account, Role
from delivery import lifecycle
from delivery.models import RunAccount
from delivery.sender_domain import check as sender_domain
from delivery.sessions import archive as archiving
from delivery.sessions import ask, first_contacts, groups
from delivery.sessions import connect as connection
from delivery.transports.base import AccountState


@login_required
@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, lifecycle.pause_account, "Paused. Nothing is sent until you resume the account.")


@login_required
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, lifecycle.start_account, "Resumed. The account can send again.")


@login_required
@require_POST
def approval(request: HttpRequest, pk: int) -> HttpResponse:
    """Let everything that the account sends need approval; or ask a second person to lift that."""
    account, by = touched(Account.objects.select_related("owner"), request, pk, Role.MANAGE), user_of(request)
    try:
        if account.needs_approval:
            waits = strictness.ask_to_lift(account, by=by)
            messages.info(request, "Nobody makes this less strict alone: it waits for approval now.")
            return redirect("approvals:page", waits.pk)
        strictness.mark(account, by=by)
        messages.success(request, "Everything that this account sends needs approval from now on.")
    except strictness.StrictnessError as error:
        messages.error(request, str(error))
    return redirect("accounts:page", pk)


@login_required
@require_POST
def connect(request: HttpRequest, pk: int) -> HttpResponse:
    """Start the session of the account; redirect to the pairing page if a code must be scanned."""
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    try:
        account = connection.connect(account, by=user_of(request))
    except ask.NoAnswerError as error:
        messages.error(request, str(error))
        return redirect("accounts:page", pk)
    if account.status == Account.Status.PAIRING:
        return redirect("accounts:pair", pk)
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is connected.")
    else:
        messages.warning(
            request, "The service reports that this account is not connected. Check it there, then try again."
        )
    return redirect("accounts:page", pk)


@login_required
@require_POST
def check(request: HttpRequest, pk: int) -> HttpResponse:
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.SEND)
    try:
        looked = connection.look(account)
    except ask.NoAnswerError as error:
        messages.error(request, str(error))
        return redirect("accounts:page", pk)
    level = messages.SUCCESS if looked.state is AccountState.WORKING else messages.WARNING
    messages.add_message(request, level, looked.sentence)
    return redirect("accounts:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def log_out(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation with the number of runs that would pause, then log out."""
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    if request.method == "POST":
        return _do(request, pk, connection.log_out, "Logged out. Pair the account again to send.")
    runs = RunAccount.objects.filter(account=account, open=True).count()
    return render(request, "accounts/account_log_out.html", {"account": account, "runs": runs})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation with the number of reminders that use the account, then archive it."""
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    if request.method == "POST":
        return _do(request, pk, archiving.archive, "Account archived.")
    reminders = account.reminder_accounts.count()
    return render(request, "accounts/account_archive.html", {"account": account, "reminders": reminders})


@login_required
@require_POST
def unarchive(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, archiving.unarchive, "Account unarchived.")


@login_required
@require_POST
def check_domain(request: HttpRequest, pk: int) -> HttpResponse:
    """Look up the records of the sender's domain now; a worker does so once a day."""
    account = touched(Account.objects.select_related("owner"), request, pk, Role.SEND)
    found = sender_domain.check(account)
    if found.trouble:
        messages.error(request, f"{found.trouble}. Try again later.")
    return redirect(f"{reverse('accounts:page', args=[pk])}#sender-domain")


@login_required
@require_POST
def sync_groups(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, groups.start, "Reading the groups of this account.")


@login_required
@require_POST
def unlock(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, first_contacts.unlock, "Messages to new people are sent again.")


@login_required
@require_POST
def lift_health(request: HttpRequest, pk: int) -> HttpResponse:
    done = "The account sends at full speed again. Its health is judged anew by the next messages."
    return _do(request, pk, lifecycle.lift_health, done)


@login_required
@require_POST
def renew_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    done = "New address created. The service reports to it now; the old address no longer works."
    return _do(request, pk, connection.renew_webhook, done)


def _do(request: HttpRequest, pk: int, move: Callable[..., object], done: str) -> HttpResponse:
    """Do one action and show its result; the action itself asks for the role that it needs.

    A second press finds another state, and shows why nothing was done.
    """
    account, by = seen(Account.objects.select_related("owner", "status_by"), request, pk), user_of(request)
    try:
        move(account, by=by)
    except (lifecycle.WrongStateError, ask.NoAnswerError) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect("accounts:page", pk)
