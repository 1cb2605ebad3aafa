"""The page of a run: how it goes, and what became of each target."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET

from accounts.models import Account
from accounts.paging import page_of
from accounts.roles import may_touch
from delivery.models import Run, RunTarget
from delivery.progress import progress_of
from delivery.states import OPEN_RUN, TargetStatus
from reminders import results
from reminders.access import seen_run
from reminders.planning import forecast_run
from reminders.replies import replies_to_run
from reminders.streaming import streamed

# What needs a person comes first.
ORDER = (
    TargetStatus.UNCONFIRMED,
    TargetStatus.FAILED,
    TargetStatus.SENDING,
    TargetStatus.PENDING,
    TargetStatus.SENT,
    TargetStatus.SKIPPED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One status with its number; the numbers are the run's own, so that they cost nothing."""

    status: str
    count: int
    current: bool


@login_required
@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    found = seen_run(request, pk)
    chosen = _chosen(found, request.GET.get("status", ""))
    # Not joined: the planner would rather look through millions of targets than trust that each has a recipient.
    targets = RunTarget.objects.filter(run=found, status=chosen).prefetch_related(
        "recipient", Prefetch("account", Account.objects.defer("credentials"))
    )
    page = page_of(targets, request.GET)
    context = {
        "run": found,
        "open": found.status in OPEN_RUN,
        "progress": progress_of(found),
        "forecast": forecast_run(found, now=timezone.now()),
        "may_touch": may_touch(found, request.user),
        "tabs": [
            Tab(status=status, count=getattr(found, status), current=status == chosen) for status in ORDER
        ],
        "chosen": chosen,
        "page": page,
        "replies": replies_to_run(found),
    }
    return render(request, "reminders/run.html", context)


@login_required
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """How the run goes now, to be swapped in, or as JSON for those who ask for it."""
    found = progress_of(seen_run(request, pk))
    if request.accepts("text/html"):
        context = {"run": found.run, "progress": found, "open": found.run.status in OPEN_RUN}
        return render(request, "reminders/_run_progress.html", context)
    return JsonResponse(found.snapshot)


@login_required
@require_GET
def run_results(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Every target of the run as CSV, sent as it is read."""
    found = seen_run(request, pk)
    disposition = content_disposition_header(True, f"run-{found.pk}.csv") or "attachment"
    return streamed(
        request, results.as_csv(found), content_type="text/csv; charset=utf-8", disposition=disposition
    )


def _chosen(found: Run, asked: str) -> str:
    """The status that the address asks for, else the first of which there are any.

    What is being sent is somewhere else a second later: it is shown to who asks for it.
    """
    if asked in ORDER:
        return asked
    lasting = [status for status in ORDER if status is not TargetStatus.SENDING]
    return next((status for status in lasting if getattr(found, status)), TargetStatus.PENDING)
