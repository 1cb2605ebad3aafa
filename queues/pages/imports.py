"""The pages of an import of items: the file, its columns, the check and the result."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.access import posted, seen, touched, user_of
from accounts.downloads import csv_response
from accounts.imports.sheets import SheetError
from accounts.imports.stages import WrongStageError
from accounts.models import Role
from accounts.roles import may_touch
from queues.imports import stages
from queues.models import Queue, QueueImport
from queues.pages.forms import ColumnsForm, UploadForm

ROWS = QueueImport.objects.select_related("queue__owner")
PROBLEMS_SHOWN = 50


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest, pk: int) -> HttpResponse:
    queue = touched(Queue.objects.select_related("owner"), request, pk, Role.SEND)
    form = UploadForm(posted(request), request.FILES or None)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            job = stages.upload(queue, file, filename=file.name, by=user_of(request))
        except SheetError as error:
            form.add_error("file", str(error))
        else:
            return redirect("queues:import_columns", job.pk)
    context = {"form": form, "queue": queue, "recent": QueueImport.objects.filter(queue=queue)[:5]}
    return render(request, "queues/import.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def columns(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(ROWS, request, pk, Role.SEND)
    if job.working or job.status == QueueImport.Status.DONE:
        return redirect("queues:import_job", pk)
    form = ColumnsForm(posted(request), job=job)
    if form.is_valid():
        form.save()
        try:
            stages.start_check(job)
        except WrongStageError as error:
            messages.error(request, str(error))
        return redirect("queues:import_job", pk)
    try:
        rows = form.rows(stages.sample_of(job))
    except (SheetError, OSError) as error:
        messages.error(request, str(error))
        return redirect("queues:upload", job.queue_id)
    return render(request, "queues/import_columns.html", {"job": job, "form": form, "rows": rows})


@login_required
@require_safe
def show(request: HttpRequest, pk: int) -> HttpResponse:
    job = seen(ROWS, request, pk)
    if job.status in {QueueImport.Status.DRAFT, QueueImport.Status.FAILED}:
        if job.problem:
            messages.error(request, job.problem)
        return redirect("queues:import_columns", pk)
    context = {
        "job": job,
        "problems": job.problems[:PROBLEMS_SHOWN],
        "more": max(0, len(job.problems) - PROBLEMS_SHOWN),
        "may_touch": may_touch(job, request.user, Role.SEND),
    }
    return render(request, "queues/import_job.html", context)


@login_required
@require_POST
def confirm(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(ROWS, request, pk, Role.SEND)
    try:
        stages.confirm(job, by=user_of(request))
    except WrongStageError as error:
        messages.error(request, str(error))
    return redirect("queues:import_job", pk)


@login_required
@require_POST
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    job = touched(ROWS, request, pk, Role.SEND)
    try:
        stages.discard(job)
    except WrongStageError as error:
        messages.error(request, str(error))
        return redirect("queues:import_job", pk)
    messages.success(request, f"“{job}” was discarded.")
    return redirect("queues:page", job.queue_id)


@login_required
@require_safe
def report(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download the wrong rows with their reasons."""
    job = seen(ROWS, request, pk)
    lines = [("row", "recipient or id", "reason"), *(tuple(each) for each in job.problems)]
    return csv_response(request, iter(lines), "import-report")
