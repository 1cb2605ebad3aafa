"""The page of one account, and the part of it that changes while one looks."""

from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.encryption import UnreadableSecretError
from accounts.models import Account, GroupSync
from accounts.profiles import PROFILES
from accounts.roles import may_touch
from activity import plots
from delivery import account_view
from delivery.inbound import hooks
from delivery.pages.access import seen_account
from delivery.pages.offers import offer
from delivery.transports import kinds
from delivery.transports.base import Webhook

WIDTH, HEIGHT = 480, 100


@login_required
@require_GET
def page(request: HttpRequest, pk: int) -> HttpResponse:
    account = seen_account(request, pk)
    context = _now(request, account)
    context |= {
        "webhook": _webhook(account) if context["may_touch"] else None,
        "offer": offer(kind) if (kind := kinds().get(account.transport)) else None,
        "profile": PROFILES[account.profile],
        "limits": account_view.explained(account),
        "warm_up": _drawn(account_view.warm_up(account)),
        "runs": account_view.latest_runs(account),
        "troubles": account_view.troubles(account, now=timezone.now()),
        "width": WIDTH,
        "height": HEIGHT,
    }
    return render(request, "accounts/account.html", context)


@login_required
@require_GET
def now(request: HttpRequest, pk: int) -> HttpResponse:
    """How it is at this moment, to be swapped in."""
    return render(request, "accounts/_account_now.html", _now(request, seen_account(request, pk)))


def _now(request: HttpRequest, account: Account) -> dict[str, object]:
    moment = timezone.now()
    until = account.first_contacts_until
    current = account_view.now_of(account, now=moment)
    return {
        "account": account,
        "now": current,
        "groups_change": current.sync is not None and _is_fresh(current.sync, moment),
        "may_touch": may_touch(account, request.user),
        "locked_until": until if until and until > moment else None,
        "capabilities": account_view.capabilities_of(account),
        "groups": partial(account_view.group_count, account),  # counted where it is shown
    }


def _is_fresh(sync: GroupSync, now: datetime) -> bool:
    """Whether groups are being read, or were a moment ago: an open page must follow."""
    return sync.finished_at is None or now - sync.finished_at < timedelta(minutes=1)


def _webhook(account: Account) -> Webhook | None:
    """Where its service reports; an address that no key opens any more is none."""
    try:
        return hooks.webhook_of(account)
    except UnreadableSecretError:
        return None


def _drawn(days: list[account_view.WarmUpDay]) -> list[tuple[plots.Column, account_view.WarmUpDay]]:
    bars = plots.columns([(f"Day {day.number}", day.cap) for day in days], width=WIDTH, height=HEIGHT)
    return list(zip(bars, days, strict=True))
