"""Changing an account: what it is, how its service knows it, and what it holds itself to."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.encryption import UnreadableSecretError
from accounts.models import Account, Limit
from delivery import account_view, queues
from delivery.limits import merged
from delivery.pages.access import touched_account
from delivery.pages.forms import AccountForm, CredentialsForm, LimitForm, PaceForm
from delivery.pages.offers import offer
from delivery.transports import kinds


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    account = touched_account(request, pk)
    kind = kinds().get(account.transport)
    if kind is None:
        raise Http404
    given = request.POST if request.method == "POST" else None
    warming = account.warm_up
    form = AccountForm(given, instance=account)
    pace = PaceForm(given, instance=account, prefix="pace")
    credentials = CredentialsForm(kind, given, prefix="service", stored=_stored(account))
    if form.is_valid() and pace.is_valid() and credentials.is_valid():
        account.credentials = credentials.credentials
        _save(account, *form.fields, *pace.fields, *account.begin_warm_up_again(unless=warming))
        messages.success(request, f"{account} is saved.")
        return redirect("accounts:page", pk)
    context = {
        "account": account,
        "form": form,
        "pace": pace,
        "credentials": credentials,
        "offer": offer(kind),
    }
    return render(request, "accounts/account_edit.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def limits(request: HttpRequest, pk: int) -> HttpResponse:
    """One form for each action that the account can do, beside what holds now and where it comes from."""
    account = touched_account(request, pk)
    own = {limit.action: limit for limit in Limit.objects.filter(account=account)}
    given = request.POST if request.method == "POST" else None
    shown = [
        (held, _limit_form(given, own.get(held.action) or Limit(account=account, action=held.action)))
        for held in account_view.explained(account)
    ]
    if given is not None and all(form.is_valid() for _, form in shown):
        _save_limits(account, [form for _, form in shown])
        messages.success(request, "The limits hold within a few seconds.")
        return redirect("accounts:page", pk)
    return render(request, "accounts/account_limits.html", {"account": account, "shown": shown})


def _limit_form(given: QueryDict | None, limit: Limit) -> LimitForm:
    form = LimitForm(given, prefix=limit.action, instance=limit)
    form.hint(merged(limit.account, limit.action, None).limits)
    return form


@transaction.atomic
def _save_limits(account: Account, forms: list[LimitForm]) -> None:
    for form in forms:
        if not form.says_nothing:
            form.save()
        elif form.instance.pk:
            form.instance.delete()
    queues.wake_on_commit([account.pk])


@transaction.atomic
def _save(account: Account, *changed: str) -> None:
    """Only what a person typed: the engine writes to other columns of the row meanwhile."""
    account.save(update_fields=[*changed, "credentials"])
    queues.wake_on_commit([account.pk])


def _stored(account: Account) -> dict[str, str]:
    """What is stored; nothing where no key opens it any more, so that it can be entered anew."""
    try:
        return dict(account.credentials)
    except UnreadableSecretError:
        return {}
