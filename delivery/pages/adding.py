"""Adding an account: choose the service, then say what it needs."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from accounts.models import Account
from accounts.models.account import Channel
from delivery import asking, connection
from delivery.pages.access import user_of
from delivery.pages.forms import AccountForm, CredentialsForm
from delivery.pages.offers import offer, offers
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
    credentials = CredentialsForm(transport, given, prefix="service", initial=_known(kind))
    if form.is_valid() and credentials.is_valid():
        account = form.save(commit=False)
        account.credentials = credentials.credentials
        account.save()
        return _connected(request, account)
    context = {
        "form": form,
        "credentials": credentials,
        "offer": offer(transport),
        "channel": Channel(channel).label,
        "steps": steps("service"),
    }
    return render(request, "accounts/account_add.html", context)


def _known(kind: str) -> dict[str, str]:
    """What nobody needs to look up: the sandbox that runs beside this may listen elsewhere than usual."""
    return {"base_url": settings.SANDBOX_URL} if kind == "sandbox" else {}


def _connected(request: HttpRequest, account: Account) -> HttpResponse:
    """Try it at once: what was typed wrong is found while one still has it at hand."""
    try:
        account = connection.connect(account, by=user_of(request))
    except asking.NoAnswerError as error:
        messages.error(request, f"{account} is saved, but not connected. {error} Correct it under Edit.")
        return redirect("accounts:page", account.pk)
    if account.status == Account.Status.PAIRING:
        return redirect("accounts:pair", account.pk)
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is connected and ready to send.")
    else:
        messages.warning(request, f"{account} is saved, but its service says that it is not connected.")
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
