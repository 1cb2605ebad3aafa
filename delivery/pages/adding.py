"""The pages that add an account: choose the service, then enter its details."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import user_of
from accounts.models import Account
from accounts.models.account import Channel
from audit.record import record, values_of
from delivery.pages.forms import AccountForm, CredentialsForm
from delivery.pages.offers import offer, offers
from delivery.sender_domain import check as sender_domain
from delivery.sessions import ask, calls, connect, one_account
from delivery.transports import kinds


@login_required
@require_GET
def choose(request: HttpRequest) -> HttpResponse:
    channels = [(Channel(channel).label, channel, offers(channel)) for channel in Channel.values]
    context = {"channels": [each for each in channels if each[2]], "steps": steps("choose")}
    return render(request, "accounts/account_choose.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, channel: str, kind: str) -> HttpResponse:
    transport = kinds().get(kind)
    if transport is None or channel not in transport.channels:
        raise Http404
    owner = user_of(request)
    account = Account(owner=owner, channel=channel, transport=kind, zone=owner.zone or "UTC")
    given = request.POST if request.method == "POST" else None
    form = AccountForm(given, instance=account)
    credentials = CredentialsForm(account, given, prefix="service", initial=_known(kind))
    if form.is_valid() and credentials.is_valid():
        account = form.save(commit=False)
        one_account.enter(account, credentials.credentials)
        if _saved(account, credentials):
            return _connected(request, account)
    context = {
        "form": form,
        "credentials": credentials,
        "offer": offer(transport),
        "channel": Channel(channel).label,
        "steps": steps("service"),
    }
    return render(request, "accounts/account_add.html", context)


def _saved(account: Account, credentials: CredentialsForm) -> bool:
    """Save a new account; return False, with an error in the form, if another account took its session meanwhile."""
    try:
        with transaction.atomic():
            account.save()
            shown = values_of(account, ("name", "channel", "transport", "profile", "zone"))
            record("account.added", account, after=shown)
            sender_domain.later(account)
    except IntegrityError as error:
        if one_account.CONSTRAINT not in str(error):
            raise
        credentials.add_error(None, one_account.TAKEN)
        return False
    return True


def _known(kind: str) -> dict[str, str]:
    """Return values to fill in beforehand: the sandbox beside this installation may use another port than usual."""
    return {"base_url": settings.SANDBOX_URL} if kind == "sandbox" else {}


def _connected(request: HttpRequest, account: Account) -> HttpResponse:
    """Connect the new account at once, so that a typing error is found while the person still has the details."""
    try:
        account = connect.connect(account, by=user_of(request))
    except ask.NoAnswerError as error:
        messages.error(
            request, f"{account} was saved, but is not connected. {error} Press Edit to correct it."
        )
        return redirect("accounts:page", account.pk)
    except calls.BusyError as error:
        messages.warning(request, f"{account} was saved, but is not connected yet. {error}")
        return redirect("accounts:page", account.pk)
    if account.status == Account.Status.PAIRING:
        return redirect("accounts:pair", account.pk)
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is connected and ready to send.")
    else:
        messages.warning(request, f"{account} was saved, but the service reports that it is not connected.")
    return redirect("accounts:page", account.pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    title: str
    url: str = ""
    done: bool = False
    current: bool = False


def steps(current: str) -> list[Step]:
    names = {"choose": "Service", "service": "Details", "connect": "Connect"}
    order = list(names)
    return [
        Step(title=title, done=order.index(name) < order.index(current), current=name == current)
        for name, title in names.items()
    ]
