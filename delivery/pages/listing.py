"""The list of accounts, each with its state, the reason and the next action."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import user_of
from accounts.models import Account
from accounts.paging import page_of
from accounts.roles import visible
from delivery.limits.usage import Gauge
from delivery.pages import account_facts, health_card
from delivery.sentences import account_state
from delivery.sentences.account_sentence import Why
from delivery.sentences.next_action import NextAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    account: Account
    why: Why
    action: NextAction | None
    gauge: Gauge | None
    health: tuple[str, str] | None = None  # a badge: its word and its tone


@login_required
@require_GET
def account_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").replace("\0", "").strip()
    archived = request.GET.get("show") == "archived"
    accounts = visible(Account.objects.filter(archived_at__isnull=not archived), request.user)
    if search:
        accounts = accounts.filter(Q(name__icontains=search) | Q(own_address__icontains=search))
    found = accounts.select_related("owner", "status_by").defer("credentials", "webhook")
    page = page_of(found, request.GET, by="name")
    now = timezone.now()
    whys, gauges = account_state.whys(page.rows, now=now), account_facts.day_gauges(page.rows, now=now)
    health = health_card.badges(page.rows, now=now)
    allowed = account_facts.allowed_actions(page.rows, user_of(request))
    rows = [
        Row(
            account=account,
            why=whys[account.pk],
            action=allowed.get(account.pk),
            gauge=gauges.get(account.pk),
            health=health.get(account.pk),
        )
        for account in page.rows
    ]
    context = {"page": page, "rows": rows, "search": search, "archived": archived}
    return render(request, "accounts/account_list.html", context)
