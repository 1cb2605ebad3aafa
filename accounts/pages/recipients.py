"""The pages of recipients: the list, one recipient with its history, and the actions on it."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.access import posted, seen, touched, user_of
from accounts.downloads import csv_response
from accounts.models import Account, Recipient, Role, Tag
from accounts.models.account import Channel
from accounts.pages.recipient_forms import ReasonForm, RecipientForm
from accounts.paging import AtLeast, counted, page_of
from accounts.recipients import add as recipients
from accounts.recipients.consent_actions import ACTIONS, suiting
from accounts.recipients.export import export_lines
from accounts.recipients.filters import RecipientFilter
from accounts.recipients.history import history
from accounts.recipients.states import STATES, state_now
from accounts.roles import rights_on, visible
from activity.components.looks import look_of
from audit.record import record

CHOICES = 200  # in a filter; the search finds the others


@login_required
@require_safe
def recipient_list(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    chosen = RecipientFilter.of(request.GET)
    rows = chosen.rows(user)
    shown = rows.annotate(state=state_now()).select_related("owner", "account").defer("account__credentials")
    page = page_of(shown.prefetch_related("tags"), request.GET, by="name")
    accounts = visible(Account.objects.filter(archived_at=None), user).only("id", "name").order_by("name")
    context = {
        "page": page,
        "chosen": chosen,
        "count": _count(rows, searched=bool(chosen.q)) if page.rows else "",
        "tags": visible(Tag.objects.all(), user)[:CHOICES],
        "accounts": accounts[:CHOICES],
        "channels": Channel.choices,
        "states": [(state, look_of(state).word) for state in STATES],
    }
    return render(request, "recipients/recipient_list.html", context)


def _count(rows: QuerySet[Recipient], *, searched: bool) -> str:
    found = counted(rows.order_by("name", "id"), searched=searched)
    number = str(found) if isinstance(found, AtLeast) else f"{found:,}"
    return f"{number} recipient{'' if found == 1 else 's'}"


@login_required
@require_safe
def export(request: HttpRequest) -> HttpResponseBase:
    rows = RecipientFilter.of(request.GET).rows(user_of(request))
    filters = sorted(name for name, value in request.GET.items() if value)  # their values may name somebody
    record("export.made", owner_id=user_of(request).pk, after={"of": "recipients", "filters": filters})
    return csv_response(request, export_lines(rows), "recipients")


@login_required
@require_safe
def recipient_page(request: HttpRequest, pk: int) -> HttpResponse:
    found = Recipient.objects.annotate(state=state_now()).select_related("owner", "account")
    recipient = seen(found.defer("account__credentials"), request, pk)
    may = rights_on(recipient, request.user)
    context = {
        "recipient": recipient,
        "tags": recipient.tags.all(),
        "history": history(recipient),
        "follow_ups": recipient.follow_ups.filter(status="queued").select_related("step")[:5],
        "actions": suiting(recipient, may),
        "may": may,
    }
    return render(request, "recipients/recipient.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    form = RecipientForm(posted(request), user=user_of(request))
    if form.is_valid():
        recipient = form.save()
        messages.success(request, f"{recipient} was added.")
        return redirect("recipients:recipient", recipient.pk)
    return render(request, "recipients/edit.html", {"form": form})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    recipient = touched(Recipient.objects.select_related("owner"), request, pk, Role.WRITE)
    name = str(recipient)
    form = RecipientForm(posted(request), instance=recipient, user=user_of(request))
    if form.is_valid():
        messages.success(request, f"{form.save()} was saved.")
        return redirect("recipients:recipient", pk)
    return render(request, "recipients/edit.html", {"form": form, "recipient": recipient, "name": name})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change_consent(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    if action not in ACTIONS:
        raise Http404
    asked = ACTIONS[action]
    recipient = touched(Recipient.objects.all(), request, pk, asked.role)
    form = ReasonForm(posted(request))
    if form.is_valid():
        if asked.do(recipient, how=form.cleaned_data["how"], by=user_of(request)):
            messages.success(request, f"{recipient} is {asked.done}.")
        else:
            messages.info(request, f"{recipient} was {asked.done} already.")
        return redirect("recipients:recipient", pk)
    return render(request, "recipients/consent.html", {"recipient": recipient, "form": form, "action": asked})


@login_required
@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    recipient = touched(Recipient.objects.all(), request, pk, Role.WRITE)
    if "back" in request.POST:
        recipients.unarchive(recipient, by=user_of(request))
        messages.success(request, f"{recipient} was unarchived.")
    else:
        recipients.archive(recipient, by=user_of(request))
        messages.success(request, f"{recipient} was archived. It receives nothing; its history is kept.")
    return redirect("recipients:recipient", pk)
