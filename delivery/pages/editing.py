"""The pages that change an account: its details, its credentials and its limits."""

from functools import partial

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.access import touched, user_of
from accounts.encryption import UnreadableSecretError
from accounts.models import Account, Limit, Role, User
from audit.record import differing, record, stored, values_of
from delivery.engine import wakeups
from delivery.file_addresses import memory
from delivery.limits.lookup import merged
from delivery.limits.own import far_above, save_limits
from delivery.pages import account_facts
from delivery.pages.forms import AccountForm, CredentialsForm, HoursForm, LimitForm, PaceForm
from delivery.pages.offers import offer
from delivery.sender_domain import check as sender_domain
from delivery.sessions import one_account
from delivery.transports import kinds


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    kind = kinds().get(account.transport)
    if kind is None:
        raise Http404
    given = request.POST if request.method == "POST" else None
    warming = account.warm_up
    form = AccountForm(given, instance=account)
    pace = PaceForm(given, instance=account, prefix="pace")
    hours = HoursForm(given, instance=account, prefix="hours")
    credentials = CredentialsForm(account, given, prefix="service", stored=_stored(account))
    if all(each.is_valid() for each in (form, pace, hours, credentials)):
        entered = one_account.enter(account, credentials.credentials)
        _save(
            account,
            *form.fields,
            *pace.fields,
            *hours.fields,
            *entered,
            *account.begin_warm_up_again(unless=warming),
            by=user_of(request),
        )
        messages.success(request, f"{account} was saved.")
        return redirect("accounts:page", pk)
    context = {
        "account": account,
        "form": form,
        "pace": pace,
        "hours": hours,
        "credentials": credentials,
        "offer": offer(kind),
    }
    return render(request, "accounts/account_edit.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def limits(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one form for each action of the account, beside the current limits and their sources."""
    account = touched(Account.objects.select_related("owner", "status_by"), request, pk, Role.MANAGE)
    own = {limit.action: limit for limit in Limit.objects.filter(account=account)}
    given = request.POST if request.method == "POST" else None
    shown = [
        (held, _limit_form(given, own.get(held.action) or Limit(account=account, action=held.action)))
        for held in account_facts.explained(account)
    ]
    if given is not None and all(form.is_valid() for _, form in shown):
        save_limits(account, [form.instance for _, form in shown], by=user_of(request))
        messages.success(request, "Limits saved. They apply in a few seconds.")
        for warning in [each for _, form in shown for each in far_above(form.instance)]:
            messages.warning(request, warning)
        return redirect("accounts:page", pk)
    return render(request, "accounts/account_limits.html", {"account": account, "shown": shown})


def _limit_form(given: QueryDict | None, limit: Limit) -> LimitForm:
    form = LimitForm(given, prefix=limit.action, instance=limit)
    form.hint(merged(limit.account, limit.action, None).limits)
    return form


@transaction.atomic
def _save(account: Account, *changed: str, by: User) -> None:
    """Save only the columns that a person changed: the engine writes to others at the same time."""
    names = [name for name in changed if name != "credentials"]
    old, new = differing(stored(account, names), values_of(account, names))
    if "credentials" in changed:
        new["credentials"] = "entered again"
        transaction.on_commit(partial(memory.forget, account.pk))
    if new:
        record("account.changed", account, by=by, before=old, after=new)
    account.save(update_fields=changed)
    sender_domain.later(account)
    wakeups.wake_on_commit([account.pk])


def _stored(account: Account) -> dict[str, str]:
    """Return the stored credentials; empty where no key can decrypt them, so that they can be entered again."""
    try:
        return dict(account.credentials)
    except UnreadableSecretError:
        return {}
