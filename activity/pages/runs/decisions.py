"""Decisions of a person about many messages of a run: all unconfirmed or failed ones, or those of one cause.

The page shows the number on the button, and asks once more with the same number.
"""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access import touched, user_of
from accounts.models import Role
from delivery.lifecycle.causes import Cause, of_cause
from delivery.models import Run, RunTarget
from delivery.run_actions import BATCHES, Action, decide
from delivery.states import TargetStatus


@login_required
@require_POST
def decide_about_many(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Do one action to many messages, after the person has confirmed their number."""
    action, cause = BATCHES[verb], cause_in(request.POST)
    run = touched(Run.objects.select_related("reminder", "owner"), request, pk, Role.SEND)
    back = f"{reverse('runs:page', args=[run.pk])}?status={status_of(action)}#targets"
    if "confirmed" not in request.POST:
        context = {
            "run": run,
            "action": action,
            "cause": cause,
            "count": of_cause(RunTarget.objects.filter(run=run, status=status_of(action)), cause).count(),
            "back": back,
        }
        return render(request, "runs/confirm_many.html", context)
    done, refused = decide(action, run, cause=cause, by=user_of(request))
    if done:
        messages.success(request, done)
    else:
        messages.warning(request, refused)
    return redirect(back)


def status_of(action: Action[Run]) -> TargetStatus:
    """Return the status of the messages that an action is about."""
    return TargetStatus.FAILED if action.verb == "retry-all" else TargetStatus.UNCONFIRMED


def cause_in(said: QueryDict) -> Cause | None:
    """Return the cause that a button names; None for all messages of the status."""
    account = said.get("account", "")
    if not (account.isascii() and account.isdigit() and len(account) < 19):
        return None
    return Cause(account_id=int(account), text=said.get("cause", ""))
