"""The lists of accounts and of recipients."""

from django.contrib.auth.decorators import login_required
from django.db.models import Case, CharField, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.models import Account, Recipient
from accounts.paging import page_of
from accounts.roles import visible


@login_required
def account_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").strip()
    accounts = visible(Account.objects.filter(archived_at=None), request.user).select_related("owner")
    if search:
        accounts = accounts.filter(Q(name__icontains=search) | Q(own_address__icontains=search))
    page = page_of(accounts.defer("credentials"), request.GET, by="name")
    return render(request, "accounts/account_list.html", {"page": page, "search": search})


@login_required
def recipient_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").strip()
    recipients = visible(Recipient.objects.filter(archived_at=None), request.user).annotate(state=state_now())
    if search:
        recipients = recipients.filter(Q(name__icontains=search) | Q(address__icontains=search))
    rows = recipients.select_related("owner", "account").prefetch_related("tags")
    page = page_of(rows, request.GET, by="name")
    return render(request, "accounts/recipient_list.html", {"page": page, "search": search})


def state_now() -> Case:
    """What stands between a recipient and the next message, the strongest reason first."""
    return Case(
        When(opted_out_at__isnull=False, then=Value("opted_out")),
        When(blocked_at__isnull=False, then=Value("blocked")),
        When(cooldown_until__gt=timezone.now(), then=Value("cooling_down")),
        When(not_interested_at__isnull=False, then=Value("not_interested")),
        default=Value("reachable"),
        output_field=CharField(),
    )
