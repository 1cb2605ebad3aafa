"""The pairing page: a code to scan, with the time left, or a code to type on the phone."""

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

from accounts.access import touched, user_of
from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, Role
from accounts.regions import region_of
from delivery.pages import account_facts
from delivery.pages.adding import steps
from delivery.sessions import ask, connect
from delivery.transports.base import Pairing

FIRST, LATER, MOST = 60, 20, 6  # seconds that codes hold, and how many there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A code as the page shows it. `mark` differs from that of the next code."""

    image: str
    seconds: int
    number: int
    mark: str


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pair(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the code to scan (GET), or a code to type for the posted phone number (POST)."""
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
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
    """Return the new code for HTMX, nothing while the code is the same, or a redirect once the account is paired."""
    account, shown, problem = _look(
        request, touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    )
    if account.status == Account.Status.ACTIVE:
        messages.success(request, f"{account} is paired and ready to send.")
        return HttpResponse(headers={"HX-Redirect": reverse("accounts:page", args=[pk])})
    if shown is not None and shown.mark == request.GET.get("mark"):
        return HttpResponse(status=204)
    return render(request, "accounts/_pairing.html", _context(account, shown, problem))


def _look(request: HttpRequest, account: Account) -> tuple[Account, Shown | None, str]:
    """Return the account with its current state, the code to scan if there is one, and the error if there is one."""
    try:
        account = connect.look(account).account
        if account.status != Account.Status.PAIRING:
            return account, None, ""
        offered = connect.pairing(account, by=user_of(request))
        return account, _shown(offered, account) if offered else None, ""
    except ask.NoAnswerError as error:
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
    """Return the number of the code shown `seconds` after pairing began: the first lasts 60 s, five more 20 s each."""
    return 1 if seconds < FIRST else min(MOST, 2 + int((seconds - FIRST) // LATER))


def _image(pairing: Pairing) -> str:
    if pairing.image:
        return f"data:image/png;base64,{base64.b64encode(pairing.image).decode()}"
    code: str = segno.make_qr(pairing.code).svg_data_uri(border=0, dark="#15171c")
    return code


def _typed(request: HttpRequest, account: Account) -> dict[str, str]:
    """Return the code to type on the phone with the posted number, or what is wrong with the number."""
    phone = request.POST.get("phone", "").strip()
    try:
        number = canonical("whatsapp", phone, region=region_of(account.owner)).text
        return {"phone": phone, "typed": connect.pairing_code(account, number, by=user_of(request))}
    except (BadAddressError, ask.NoAnswerError) as error:
        return {"phone": phone, "phone_error": str(error)}


def _context(account: Account, shown: Shown | None, problem: str) -> dict[str, object]:
    return {
        "account": account,
        "shown": shown,
        "problem": problem,
        "most": MOST,
        "by_code": account_facts.capabilities_of(account).pairing_code,
        "steps": steps("connect"),
        "sandbox_url": account.credentials.get("base_url", "") if account.transport == "sandbox" else "",
    }
