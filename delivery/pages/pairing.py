"""Pairing: the code to scan, with its time, until the phone has scanned it; or a code to type."""

import base64
import hashlib
from dataclasses import dataclass

import segno
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account
from accounts.regions import region_of
from delivery import account_view, asking, connection
from delivery.pages.access import touched_account, user_of
from delivery.pages.adding import steps
from delivery.transports.base import Pairing

FIRST, LATER, MOST = 60, 20, 6  # seconds that codes hold, and how many there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A code as the page shows it. `mark` tells it from the next one."""

    image: str
    seconds: int
    number: int
    mark: str


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pair(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows the code to scan; POST, with a phone number, one to type."""
    account = touched_account(request, pk)
    typed = _typed(request, account) if request.method == "POST" else {}
    account, shown, problem = _look(request, account)
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is paired and ready to send.")
        return redirect("accounts:page", pk)
    context = _context(account, shown, problem) | typed
    return render(request, "accounts/account_pair.html", context)


@login_required
@never_cache
@require_GET
def pair_now(request: HttpRequest, pk: int) -> HttpResponse:
    """What to swap in: nothing while the same code holds, the account's page once it is paired."""
    account, shown, problem = _look(request, touched_account(request, pk))
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is paired and ready to send.")
        return HttpResponse(headers={"HX-Redirect": reverse("accounts:page", args=[pk])})
    if shown is not None and shown.mark == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "accounts/_pairing.html", _context(account, shown, problem))


def _look(request: HttpRequest, account: Account) -> tuple[Account, Shown | None, str]:
    """The account as its service sees it, and the code that it offers now, or why there is none."""
    try:
        account, _ = connection.look(account)
        if account.status != Account.Status.PAIRING:
            return account, None, ""
        return account, _shown(connection.pairing(account, by=user_of(request)), account), ""
    except asking.NoAnswerError as error:
        return account, None, str(error)


def _shown(pairing: Pairing, account: Account) -> Shown:
    content = pairing.code.encode() or pairing.image
    since = (timezone.now() - (account.status_changed_at or timezone.now())).total_seconds()
    return Shown(
        image=_image(pairing),
        seconds=max(1, round(pairing.expires_in)),
        number=code_number(since),
        mark=hashlib.sha256(content).hexdigest()[:16],
    )


def code_number(seconds: float) -> int:
    """Which code it is, so long after pairing began: the first holds a minute, five more 20 seconds each."""
    return 1 if seconds < FIRST else min(MOST, 2 + int((seconds - FIRST) // LATER))


def _image(pairing: Pairing) -> str:
    if pairing.image:
        return f"data:image/png;base64,{base64.b64encode(pairing.image).decode()}"
    code: str = segno.make_qr(pairing.code).svg_data_uri(border=0, dark="#15171c")
    return code


def _typed(request: HttpRequest, account: Account) -> dict[str, str]:
    """The code to type on the phone whose number was given, or what is wrong with the number."""
    phone = request.POST.get("phone", "").strip()
    try:
        number = canonical("whatsapp", phone, region=region_of(account.owner)).text
        return {"phone": phone, "typed": connection.pairing_code(account, number, by=user_of(request))}
    except (BadAddressError, asking.NoAnswerError) as error:
        return {"phone": phone, "phone_error": str(error)}


def _context(account: Account, shown: Shown | None, problem: str) -> dict[str, object]:
    return {
        "account": account,
        "shown": shown,
        "problem": problem,
        "most": MOST,
        "by_code": account_view.capabilities_of(account).pairing_code,
        "steps": steps("connect"),
        "sandbox_url": account.credentials.get("base_url", "") if account.transport == "sandbox" else "",
    }
