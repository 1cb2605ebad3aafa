"""The page that hands over a run, or all work of an account: first both forecasts, then the button (SPEC S8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.access import touched, user_of
from accounts.models import Account, Role
from delivery.hand_over import preview
from delivery.hand_over.doors import hand_over_all, look
from delivery.hand_over.move import runs_of
from delivery.hand_over.split import Wish
from delivery.models import Run

PREVIEWS = 5  # runs whose forecasts are shown; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The runs that are handed over, from which account, if not from all, and the page behind."""

    runs: Sequence[Run]
    name: str
    back: str
    of: int | None = None


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def of_account(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand over everything that an account still has to send."""
    account = touched(Account.objects.defer("credentials"), request, pk, Role.SEND)
    back = reverse("accounts:page", args=[pk])
    return answer(request, Work(runs=runs_of(account), name=f"all work of {account}", back=back, of=pk))


def answer(request: HttpRequest, work: Work) -> HttpResponse:
    """Show the choice with its forecasts, or hand over what was shown."""
    person, now = user_of(request), timezone.now()
    accounts = preview.choices_for_all(work.runs, person, but=work.of)
    said = request.POST if request.method == "POST" else request.GET
    wish = _wish(said, accounts, work)
    if request.method == "POST" and wish.to and said.get("shown") == _print(wish):
        report = hand_over_all(work.runs, wish, by=person)
        for sentence in report.told:
            messages.success(request, sentence)
        for sentence in report.waiting:
            messages.info(request, sentence)
        for sentence in report.refused:
            messages.warning(request, sentence)
        return redirect(work.back)
    context = {
        "work": work,
        "accounts": accounts,
        "wish": wish,
        "previews": look(work.runs[:PREVIEWS], wish, now=now, by=person).previews if wish.to else [],
        "more": len(work.runs[PREVIEWS:]),
        "shown": _print(wish),
    }
    return render(request, "accounts/hand_over.html", context)


def _wish(said: QueryDict, accounts: Sequence[Account], work: Work) -> Wish:
    """Return the choice of the form; the first account where nothing was chosen yet."""
    possible = {str(account.pk): account.pk for account in accounts}
    to = [possible[word] for word in dict.fromkeys(said.getlist("to")) if word in possible]
    if not said and accounts:
        to = [accounts[0].pk]
    return Wish(to=to, known="known" in said, of=work.of)


def _print(wish: Wish) -> str:
    """Return a choice as text: what is handed over is what was shown."""
    return ",".join([*map(str, sorted(wish.to)), "known" if wish.known else ""])
