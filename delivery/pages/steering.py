"""What a person does to an account: each a POST that calls one function, and says what happened."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import Account
from delivery import archiving, asking, connection, lifecycle, sync
from delivery.inbound import first_contacts
from delivery.models import RunAccount
from delivery.pages.access import touched_account, user_of
from delivery.transports.base import AccountState


@login_required
@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, lifecycle.pause_account, "It is paused: nothing leaves until you resume it.")


@login_required
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, lifecycle.start_account, "It may send again.")


@login_required
@require_POST
def connect(request: HttpRequest, pk: int) -> HttpResponse:
    """Start its session; where that wants a code, on to the code."""
    account = touched_account(request, pk)
    try:
        account = connection.connect(account, by=user_of(request))
    except asking.NoAnswerError as error:
        messages.error(request, str(error))
        return redirect("accounts:page", pk)
    if account.status == Account.Status.PAIRING:
        return redirect("accounts:pair", pk)
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is connected.")
    else:
        messages.warning(request, "Its service says that it is not connected. Look there, then try again.")
    return redirect("accounts:page", pk)


@login_required
@require_POST
def check(request: HttpRequest, pk: int) -> HttpResponse:
    account = touched_account(request, pk)
    try:
        _, state = connection.look(account)
    except asking.NoAnswerError as error:
        messages.error(request, str(error))
        return redirect("accounts:page", pk)
    level = messages.SUCCESS if state is AccountState.WORKING else messages.WARNING
    messages.add_message(request, level, connection.LOOKED[state])
    return redirect("accounts:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def log_out(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first, with the number of runs that pause."""
    account = touched_account(request, pk)
    if request.method == "POST":
        return _do(request, pk, connection.log_out, "It is logged out. Pair it again to send.")
    runs = RunAccount.objects.filter(account=account, open=True).count()
    return render(request, "accounts/account_log_out.html", {"account": account, "runs": runs})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first, with the number of reminders that lose it."""
    account = touched_account(request, pk)
    if request.method == "POST":
        return _do(request, pk, archiving.archive, "It is archived.")
    reminders = account.reminder_accounts.count()
    return render(request, "accounts/account_archive.html", {"account": account, "reminders": reminders})


@login_required
@require_POST
def unarchive(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, archiving.unarchive, "It is back.")


@login_required
@require_POST
def sync_groups(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, sync.start, "Its groups are being read.")


@login_required
@require_POST
def unlock(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(request, pk, first_contacts.unlock, "Messages to new people leave again.")


@login_required
@require_POST
def renew_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    done = "The old address is dead, and the service knows the new one."
    return _do(request, pk, connection.renew_webhook, done)


def _do(request: HttpRequest, pk: int, move: Callable[..., object], done: str) -> HttpResponse:
    """One move. Pressed twice, it is made once: the second press finds another state, and says so."""
    account, by = touched_account(request, pk), user_of(request)
    try:
        move(account, by=by)
    except (lifecycle.WrongStateError, asking.NoAnswerError) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect("accounts:page", pk)
