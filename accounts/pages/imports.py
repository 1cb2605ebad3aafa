"""The pages of an import: the file, its columns, the check and the result."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.access import posted, seen, touched, user_of
from accounts.downloads import csv_response
from accounts.imports import stages
from accounts.imports.progress import progress_of
from accounts.imports.report import report_lines, result, with_dead_addresses
from accounts.imports.sheets import SheetError
from accounts.models import Import, Role
from accounts.pages.import_forms import ColumnsForm, UploadForm
from accounts.roles import may_touch, visible
from audit.record import record

SHOWN = 20
STEPS = ("File", "Columns", "Check", "Done")
PLACES = {"draft": 1, "failed": 1, "checking": 2, "checked": 2, "saving": 2, "done": 3}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    form = UploadForm(posted(request), request.FILES or None, user=user)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            job = stages.upload(form.whose, file, filename=file.name, by=user)
        except SheetError as error:
            form.add_error("file", str(error))
        else:
            return redirect("recipients:import_columns", job.pk)
    recent = visible(Import.objects.all(), user)[:5]
    return render(request, "recipients/import.html", {"form": form, "recent": recent, "steps": _steps(0)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def columns(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(Import.objects.select_related("owner"), request, pk, Role.WRITE)
    if job.working or job.status == Import.Status.DONE:
        return redirect("recipients:import_job", pk)
    form = ColumnsForm(posted(request), instance=job)
    if form.is_valid():
        form.save()
        try:
            stages.start_check(job)
        except stages.WrongStageError as error:
            messages.error(request, str(error))
        return redirect("recipients:import_job", pk)
    try:
        rows = form.column_rows(stages.sample_of(job, by=user_of(request)))
    except SheetError as error:
        messages.error(request, str(error))
        return redirect("recipients:import")
    context = {"job": job, "form": form, "rows": rows, "steps": _steps(1, job)}
    return render(request, "recipients/import_columns.html", context)


@login_required
@require_safe
def show(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the progress of the import; polled while a worker is busy with it."""
    job = seen(Import.objects.select_related("owner"), request, pk)
    if job.status in {Import.Status.DRAFT, Import.Status.FAILED}:
        if job.problem:
            messages.error(request, job.problem)
        return redirect("recipients:import_columns", pk)
    context: dict[str, object] = {"job": job, "progress": progress_of(pk), "stalled": stages.stalled(job)}
    if request.headers.get("HX-Request"):
        response = render(request, "recipients/_import_progress.html", context)
        if not job.working:
            response["HX-Refresh"] = "true"
        return response
    context |= {
        "steps": _steps(PLACES[job.status], job),
        "may_touch": may_touch(job, request.user, Role.WRITE),
    }
    return render(request, "recipients/import_job.html", context | _found(job))


def _found(job: Import) -> dict[str, object]:
    """Return the first rows, and the first of the rows that will be left out."""
    if job.working:
        return {}
    saved = job.status == Import.Status.DONE
    first = list(with_dead_addresses(job, job.rows.all())[:SHOWN])
    wrong = list(job.rows.exclude(problem="", twin=None).exclude(pk__in=[row.pk for row in first])[:SHOWN])
    good = job.counts.get("new", 0) + job.counts.get("known", 0)
    left_out = job.counts.get("bad", 0) + job.counts.get("twins", 0)
    return {
        "first": [(row, *result(row, saved=saved)) for row in first],
        "wrong": [(row, *result(row, saved=saved)) for row in wrong],
        "good": good,
        "left_out": left_out,
        "more_wrong": left_out - len(wrong) - sum(1 for row in first if row.problem or row.twin),
    }


@login_required
@require_POST
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(Import.objects.all(), request, pk, Role.WRITE)
    try:
        stages.confirm(job)
    except stages.WrongStageError as error:
        messages.error(request, str(error))
    return redirect("recipients:import_job", pk)


@login_required
@require_POST
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(Import.objects.all(), request, pk, Role.WRITE)
    try:
        stages.discard(job)
    except stages.WrongStageError as error:
        messages.error(request, str(error))
        return redirect("recipients:import_job", pk)
    messages.success(request, f"“{job}” was discarded.")
    return redirect("recipients:list")


@login_required
@require_safe
def report(request: HttpRequest, pk: int) -> HttpResponseBase:
    job = seen(Import.objects.all(), request, pk)
    record("export.made", job, after={"of": "the report of an import"})
    return csv_response(request, report_lines(job), "import-report")


def _steps(current: int, job: Import | None = None) -> list[dict[str, object]]:
    back = job is not None and job.status in {
        Import.Status.CHECKED,
        Import.Status.FAILED,
        Import.Status.DRAFT,
    }
    addresses = {0: reverse("recipients:import")}
    if back and job is not None:
        addresses[1] = reverse("recipients:import_columns", args=[job.pk])
    if job is not None:
        addresses[2] = reverse("recipients:import_job", args=[job.pk])
    return [
        {
            "title": title,
            "url": addresses.get(place, "") if place <= current else "",
            "done": place < current,
            "current": place == current,
        }
        for place, title in enumerate(STEPS)
    ]
