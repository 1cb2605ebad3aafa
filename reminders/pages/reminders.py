"""The list of reminders, and the page of one."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import seen
from accounts.models import Approval
from accounts.paging import page_of
from accounts.roles import rights_on, visible
from delivery.models import Run
from delivery.progress import progress_of_all
from delivery.states import RunStatus
from delivery.window import day_names
from reminders import preview
from reminders.approvals.asking import to_show
from reminders.conversations.recent import replies_to_reminder
from reminders.headcount import headcount
from reminders.message import typed_of
from reminders.models import Part, Reminder
from reminders.schedule_words import timing_of

ARCHIVED = "archived"
FILTERS = ("", *Reminder.Status.values, ARCHIVED)
MOST_OPEN = 5
HISTORY = 20


@login_required
@require_GET
def reminder_list(request: HttpRequest) -> HttpResponse:
    search, chosen = request.GET.get("q", "").strip(), request.GET.get("status", "")
    reminders = _filtered(visible(Reminder.objects.all(), request.user), chosen)
    if search:
        reminders = reminders.filter(name__icontains=search.replace("\0", ""))
    last = Run.objects.filter(reminder=OuterRef("pk"), kind=Run.Kind.REMINDER).order_by("-id")
    rows = reminders.select_related("owner").annotate(
        last_run=Subquery(last.values("status")[:1]), last_run_id=Subquery(last.values("pk")[:1])
    )
    page = page_of(rows, request.GET, newest_first=True)
    context = {
        "page": page,
        "search": search,
        "filters": FILTERS,
        "chosen": chosen if chosen in FILTERS else "",
    }
    return render(request, "reminders/reminder_list.html", context)


@login_required
@require_GET
def reminder(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one reminder: its paused and running runs, message, recipients, times and history."""
    asked = Exists(Approval.objects.filter(reminder=OuterRef("pk")))
    rows: QuerySet[Any] = Reminder.objects.select_related("owner").annotate(was_asked=asked)
    found = seen(rows, request, pk)
    every_run = Run.objects.filter(reminder=found)
    # Each reply makes a run for its second message: so many would hide the others.
    runs = every_run.exclude(kind=Run.Kind.SECOND)
    open_runs = list(runs.open().order_by("-id")[:MOST_OPEN])
    accounts = [
        share.account for share in found.reminder_accounts.select_related("account").order_by("position")
    ]
    parts = [typed_of(part) for part in _first_parts(found)]
    may = rights_on(found, request.user)
    context = {
        "reminder": found,
        "may": may,
        "approvals": to_show(found) if found.was_asked else [],
        "may_edit": may.write if found.status == Reminder.Status.DRAFT else may.send,
        "paused": [run for run in open_runs if run.shown_status == RunStatus.PAUSED],
        "running": progress_of_all([run for run in open_runs if run.shown_status != RunStatus.PAUSED]),
        "accounts": accounts,
        "audience": headcount(found, [account.pk for account in accounts]),
        "tags": list(found.tags.all()),
        "preview": preview.preview(found, parts),
        "timing": timing_of(found, now=timezone.now()),
        "days": day_names(found.send_days),
        "steps": list(found.follow_up_steps.all()),
        "seconds": every_run.filter(kind=Run.Kind.SECOND).count(),
        "replies": replies_to_reminder(found),
        "page": page_of(runs.defer("parts"), request.GET, newest_first=True, size=HISTORY),
    }
    return render(request, "reminders/reminder.html", context)


def _filtered(reminders: QuerySet[Reminder], chosen: str) -> QuerySet[Reminder]:
    """Return the reminders of one tab; an unknown tab shows all. Archived ones have their own tab."""
    if chosen == ARCHIVED:
        return reminders.filter(archived_at__isnull=False, carries_queue=False)
    reminders = reminders.filter(archived_at=None)
    return reminders.filter(status=chosen) if chosen in Reminder.Status.values else reminders


def _first_parts(found: Reminder) -> QuerySet[Part]:
    return found.parts.filter(role=Part.Role.FIRST).select_related("media").order_by("position")
