"""The page of one account, and the part of the page that is refreshed while it is open."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import seen
from accounts.encryption import UnreadableSecretError
from accounts.models import Account, GroupSync, OwnLimits, RefusedReports, SenderDomain
from accounts.profiles import PROFILES
from accounts.roles import rights_on
from activity.components import plots
from delivery.file_addresses import memory
from delivery.inbound import webhooks
from delivery.pages import account_facts, health_card
from delivery.pages.offers import offer
from delivery.sessions import new_chats
from delivery.transports import kinds

WIDTH, HEIGHT = 480, 100
REFUSALS_SHOWN_FOR = timedelta(days=7)


@login_required
@require_GET
def page(request: HttpRequest, pk: int) -> HttpResponse:
    account = seen(Account.objects.select_related("owner", "status_by"), request, pk)
    context = _now(request, account)
    context |= {
        "webhook": _webhook(account) if context["may"].manage else "",
        "refused": _refused_lately(account),
        "offer": offer(kind) if (kind := kinds().get(account.transport)) else None,
        "profile": PROFILES[account.profile],
        "files": memory.shown(account.pk),
        "working_hours": account_facts.working_hours(account),
        "limits": account_facts.explained(account),
        **_own_limits(account),
        "sender_domain": SenderDomain.objects.filter(account=account).first(),
        "health": health_card.card(account, now=timezone.now(), width=WIDTH, height=HEIGHT),
        "warm_up": _drawn(account_facts.warm_up(account)),
        "runs": account_facts.latest_runs(account),
        "troubles": account_facts.troubles(account, now=timezone.now()),
        "width": WIDTH,
        "height": HEIGHT,
    }
    return render(request, "accounts/account.html", context)


@login_required
@require_GET
def now(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the part of the page that changes, for HTMX to swap in."""
    return render(
        request,
        "accounts/_account_now.html",
        _now(request, seen(Account.objects.select_related("owner", "status_by"), request, pk)),
    )


def _now(request: HttpRequest, account: Account) -> dict[str, Any]:
    moment = timezone.now()
    until = account.first_contacts_until
    may = rights_on(account, request.user)
    current = account_facts.now_of(account, now=moment)
    return {
        "account": account,
        "now": current,
        "groups_change": current.sync is not None and _is_fresh(current.sync, moment),
        "may": may,
        "may_act": current.action is not None and may.holds(current.action.role),
        "locked_until": until if until and until > moment else None,
        "capabilities": account_facts.capabilities_of(account),
        "groups": partial(account_facts.group_count, account),  # counted where it is shown
    }


def _own_limits(account: Account) -> dict[str, object]:
    """Return what the service said of its own limits, and how many new chats were used by now."""
    own = OwnLimits.objects.filter(account=account).first()
    found = new_chats.quota(account.pk, now=timezone.now()) if own else None
    used = own.new_chats - found.left if own and found and own.new_chats is not None else 0
    return {"own_limits": own, "chats_used": used}


def _is_fresh(sync: GroupSync, now: datetime) -> bool:
    """Tell whether groups are being read now, or were read within the last minute: an open page must follow."""
    return sync.finished_at is None or now - sync.finished_at < timedelta(minutes=1)


def _webhook(account: Account) -> str:
    """Return the address for the service's reports; empty where there is none, or no key can decrypt the stored one."""
    kind = kinds().get(account.transport)
    try:
        webhook = webhooks.webhook_of(account)
    except UnreadableSecretError:
        return ""
    return webhooks.address_to_enter(webhook, name=kind.signs_in_as if kind else "") if webhook else ""


def _refused_lately(account: Account) -> RefusedReports | None:
    """Return the refused reports of the last days; None where there are none."""
    since = timezone.now() - REFUSALS_SHOWN_FOR
    return RefusedReports.objects.filter(account=account, last_at__gt=since).first()


def _drawn(days: list[account_facts.WarmUpDay]) -> list[tuple[plots.Column, account_facts.WarmUpDay]]:
    bars = plots.columns([(f"Day {day.number}", day.cap) for day in days], width=WIDTH, height=HEIGHT)
    return list(zip(bars, days, strict=True))
