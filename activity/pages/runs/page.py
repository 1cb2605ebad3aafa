"""The page of a run: its progress, and the result of each target."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import seen
from accounts.downloads import csv_response
from accounts.models import Approval, Role
from accounts.roles import may_touch
from activity.pages.runs import results
from activity.pages.runs.target_list import target_list
from audit.record import record
from delivery.models import Run
from delivery.progress import progress_of
from delivery.run_actions import TARGET_ACTIONS, suiting
from delivery.states import OPEN_RUN
from delivery.wording_results import PartResults, has_wordings, results_of
from reminders.conversations.recent import replies_to_run
from reminders.forecast import forecast_run

MOST_COUNTED = 5_000  # targets, for results per wording with the page


@login_required
@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    asks = Approval.objects.waiting()
    waits = Exists(asks.filter(run=OuterRef("pk")))
    rows: QuerySet[Any] = Run.objects.select_related("reminder", "owner").annotate(asks=waits)
    found = seen(rows, request, pk)
    listed = target_list(found, request.GET)
    context = {
        "run": found,
        "open": found.status in OPEN_RUN,
        "progress": progress_of(found),
        "forecast": forecast_run(found, now=timezone.now()),
        "may_touch": may_touch(found, request.user, Role.SEND),
        "actions": suiting(found),
        "hands_over": found.status in OPEN_RUN and found.canceled_at is None and found.pending > 0,
        "target_actions": list(TARGET_ACTIONS.values()),
        "approvals": asks.filter(run=found) if found.asks else [],
        "targets": listed,
        "page": listed.page,
        "replies": replies_to_run(found),
        "has_wordings": has_wordings(found) and found.details_removed_at is None,
        "wordings": _wordings(found, asked="wordings" in request.GET),
    }
    return render(request, "runs/run.html", context)


@login_required
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the progress of the run as a part of the page, or as JSON when the request asks for JSON."""
    found = progress_of(seen(Run.objects.select_related("reminder", "owner"), request, pk))
    if request.accepts("text/html"):
        context = {"run": found.run, "progress": found, "open": found.run.status in OPEN_RUN}
        return render(request, "runs/_progress.html", context)
    return JsonResponse(found.snapshot)


@login_required
@require_GET
def run_results(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return every target of the run as CSV, streamed while it is read."""
    found = seen(Run.objects.select_related("reminder", "owner"), request, pk)
    record("export.made", found, after={"of": "the results of a run"})
    return csv_response(request, results.result_lines(found), f"run-{found.pk}")


def _wordings(found: Run, *, asked: bool) -> list[PartResults]:
    """Return the results of each wording; those of a long run only when they are asked for."""
    if not has_wordings(found) or found.details_removed_at is not None:
        return []
    return results_of(found) if asked or found.total <= MOST_COUNTED else []
