"""What a person does to a run from its pages: each a POST that calls one function of `delivery/lifecycle`.

Pressed twice, a button does its work once: the second press finds the run in another state, and says so.
"""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User
from delivery import lifecycle
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason
from reminders.access import touched_run, user_of

TYPE_ABOVE = 100  # targets from which on the name is typed before something is given up


@login_required
@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _do(
        request,
        touched_run(request, pk),
        lambda run, by: lifecycle.pause(run, reason=PauseReason.OPERATOR, by=by),
        "The run is paused: nothing more leaves until you resume it.",
    )


@login_required
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    run = touched_run(request, pk)
    return _do(request, run, lambda run, by: lifecycle.resume(run, by=by), "The run goes on.")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first, with the number of those who will not get it; many of them ask for the name too."""
    run = touched_run(request, pk)
    if run.status in SETTLED_RUN:
        messages.warning(request, "This run has ended already: there is nothing left to cancel.")
        return redirect("runs:page", run.pk)
    left = run.pending + run.sending
    typed = request.POST.get("typed", "").strip()
    must_type = left > TYPE_ABOVE
    if request.method == "POST" and (not must_type or typed == run.name):
        done = f"The run is canceled: {left:,} will not get the message."
        return _do(request, run, lambda run, by: lifecycle.cancel(run, by=by), done)
    wrong = request.method == "POST"
    context = {"run": run, "left": left, "must_type": must_type, "typed": typed, "wrong": wrong}
    return render(request, "reminders/cancel_run.html", context)


@login_required
@require_POST
def retry_failed(request: HttpRequest, pk: int) -> HttpResponse:
    run = touched_run(request, pk)
    failed = run.failed
    return _do(
        request,
        run,
        lambda run, by: lifecycle.retry_failed(run, by=by),
        f"{failed:,} failed target{'' if failed == 1 else 's'} queued again.",
    )


@login_required
@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    run = touched_run(request, pk)
    return _do(request, run, lambda run, by: lifecycle.archive(run, by=by), "The run is archived.")


@login_required
@require_POST
def confirm(request: HttpRequest, pk: int, target: int) -> HttpResponse:
    run, found = _target(request, pk, target)
    return _do(
        request, run, lambda _, by: lifecycle.confirm(found, by=by), f"{found.recipient}: marked as sent."
    )


@login_required
@require_POST
def resend(request: HttpRequest, pk: int, target: int) -> HttpResponse:
    run, found = _target(request, pk, target)
    return _do(
        request, run, lambda _, by: lifecycle.resend(found, by=by), f"{found.recipient}: queued again."
    )


def _target(request: HttpRequest, pk: int, target: int) -> tuple[Run, RunTarget]:
    run = touched_run(request, pk)
    rows = RunTarget.objects.filter(run=run).select_related("run", "recipient", "account")
    return run, get_object_or_404(rows, pk=target)


def _do(request: HttpRequest, run: Run, move: Callable[[Run, User], Run], done: str) -> HttpResponse:
    try:
        move(run, user_of(request))
    except lifecycle.WrongStateError as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, done)
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        return redirect(wanted)
    return redirect("runs:page", run.pk)
