"""The pages of sources: the list, adding one in two steps, its columns, and what it read and could not take."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, seen, touched, user_of
from accounts.models import Role, User
from accounts.paging import at_most_shown, page_of
from accounts.roles import rights_on, touchable, visible
from delivery.sessions.calls import BusyError
from queues.models import Queue, Source, SourceRead, SourceRow
from queues.pages.source_forms import AccessForm, ColumnsForm, SecretForm
from queues.sources import manage
from queues.sources.manage import BadSourceError
from queues.sources.mapping import MappingError, columns_of
from queues.sources.troubles import TroubleError
from reminders.drafts import NotPossibleError

READS_SHOWN, ROWS_SHOWN = 10, 25


@login_required
@require_http_methods(["GET", "HEAD"])
def source_list(request: HttpRequest) -> HttpResponse:
    """Show the sources of everyone whose things the person sees."""
    rows = visible(Source.objects.defer("credentials").select_related("owner", "queue"), request.user)
    page = page_of(rows, request.GET, newest_first=True)
    context = {"page": page, "may_add": _queues(user_of(request)).exists()}
    return render(request, "sources/sources.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    """Ask for the address and the secret of a table, try them, and make a source of it."""
    by = user_of(request)
    queues = _queues(by)
    initial = {"kind": Source.Kind.NOTION, "queue": request.GET.get("queue") or queues.first()}
    form = AccessForm(posted(request), queues=queues, initial=initial)
    if form.is_valid() and (source := _made(form, by)) is not None:
        return redirect("sources:columns", source.pk)
    context = {"form": form, "has_queues": queues.exists(), "new_queue": reverse("queues:new")}
    return render(request, "sources/add.html", context)


def _queues(by: User) -> QuerySet[Queue]:
    return touchable(Queue.objects.filter(archived_at=None), by, Role.MANAGE).order_by("-id")


def _made(form: AccessForm, by: User) -> Source | None:
    """Make the source; where there are several tables, let the person choose one first."""
    try:
        found = manage.tables(form.given)
        chosen = [each for each in found if each.key == form.cleaned_data["table"] or len(found) == 1]
        if not chosen:
            form.offer(found)
            return None
        return manage.make(form.cleaned_data["queue"], form.given, chosen[0], by=by)
    except BadSourceError as error:
        form.add_error(error.field, str(error))
        return None


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def columns(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a person say what the columns mean; they are asked of the service each time."""
    source = touched(_sources(), request, pk, Role.MANAGE)
    try:
        schema, repeated = manage.look(source)
    except (TroubleError, BusyError) as error:
        messages.error(request, str(error))
        return redirect("sources:page", pk)
    form = ColumnsForm(posted(request), source=source, schema=schema)
    if form.is_valid():
        try:
            manage.choose_columns(
                source,
                form.columns,
                every_minutes=form.cleaned_data["every_minutes"],
                schema=schema,
                repeated=repeated,
                by=user_of(request),
            )
        except MappingError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, "Saved. The table is being read.")
            return redirect("sources:page", pk)
    return render(request, "sources/columns.html", {"source": source, "form": form, "schema": schema})


@never_cache
@login_required
@require_http_methods(["GET", "HEAD"])
def source_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a source: how it does, its last reads, and the rows that are wrong, with their reasons."""
    return _page(request, seen(_sources(), request, pk), SecretForm())


@never_cache
@login_required
@require_POST
def access(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a source a new secret."""
    source = touched(_sources(), request, pk, Role.MANAGE)
    form = SecretForm(request.POST)
    if form.is_valid():
        try:
            manage.renew_access(source, form.cleaned_data["secret"], by=user_of(request))
        except BadSourceError as error:
            form.add_error(None if error.field == "address" else error.field, str(error))
        else:
            messages.success(request, "Saved. The source goes on.")
            return redirect("sources:page", pk)
    return _page(request, source, form)


@never_cache
@login_required
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Read now, switch on or off, or withdraw the items of missing rows."""
    role = Role.SEND if verb in {"read", "withdraw-missing"} else Role.MANAGE
    source, by = touched(_sources(), request, pk, role), user_of(request)
    try:
        messages.success(request, _done(source, verb, by))
    except (BadSourceError, NotPossibleError) as error:
        messages.error(request, str(error))
    return redirect("sources:page", pk)


def _done(source: Source, verb: str, by: User) -> str:
    match verb:
        case "read":
            manage.read_now(source, by=by)
            return "The table is read as soon as a worker is free, within a few seconds."
        case "off":
            manage.switch_off(source, by=by)
            return "Switched off. Nothing more is read or written; its items stay in the queue."
        case "on":
            manage.switch_on(source, by=by)
            return "Switched on."
        case "withdraw-missing":
            return f"Withdrawn: {manage.withdraw_missing(source, by=by):,}."
    raise Http404


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then delete a source; its waiting items are withdrawn if the person says so."""
    source = touched(_sources(), request, pk, Role.MANAGE)
    if request.method == "POST":
        done = manage.delete(source, withdraw="withdraw" in request.POST, by=user_of(request))
        messages.success(request, f"Source deleted. Items withdrawn: {done:,}.")
        return redirect("sources:list")
    context = {"source": source, "waiting": manage.waiting_items(source)}
    return render(request, "sources/delete.html", context)


def _sources() -> QuerySet[Source]:
    return Source.objects.select_related("owner", "queue")


def _page(request: HttpRequest, source: Source, form: SecretForm) -> HttpResponse:
    wrong = SourceRow.objects.filter(source=source).exclude(problem="", unwritten="")
    chosen, now = columns_of(source.mapping), timezone.now()
    context = {
        "source": source,
        "form": form,
        "rights": rights_on(source, request.user),
        "waits": source.retry_at is not None and source.retry_at > now,
        "reads": SourceRead.objects.filter(source=source).order_by("-id")[:READS_SHOWN],
        "rows": at_most_shown(SourceRow.objects.filter(source=source)),
        "page": page_of(wrong, request.GET, size=ROWS_SHOWN),
        "titles": chosen.titles,
        "read_columns": [chosen.titles.get(key, key) for key in chosen.read],
        "told_columns": [chosen.titles.get(key, key) for key in chosen.tells.values()],
    }
    return render(request, "sources/source.html", context)
