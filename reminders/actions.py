"""What a person does to a reminder from its page. Each is a POST; what cannot be undone asks first."""

from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from reminders import drafts, scheduling
from reminders.access import seen_reminder, touched_reminder, user_of
from reminders.drafts import NotPossibleError
from reminders.fire import fire, refuse_drafts
from reminders.headcount import headcount, recount
from reminders.planning import forecast
from reminders.readiness import why_not_now


@login_required
@require_POST
def duplicate(request: HttpRequest, pk: int) -> HttpResponse:
    copy = drafts.duplicate(touched_reminder(request, pk), by=user_of(request))
    messages.success(request, "This is the copy, a draft. Choose when it is sent.")
    return redirect("reminders:message", copy.pk)


@login_required
@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = touched_reminder(request, pk)
    try:
        drafts.archive(reminder, by=user_of(request))
    except NotPossibleError as error:
        messages.warning(request, str(error))
        return redirect("reminders:page", pk)
    messages.success(
        request, f"{reminder} is archived. You find it under Archived, and can bring it back there."
    )
    return redirect("reminders:list")


@login_required
@require_POST
def unarchive(request: HttpRequest, pk: int) -> HttpResponse:
    drafts.unarchive(touched_reminder(request, pk), by=user_of(request))
    messages.success(request, "It is back.")
    return redirect("reminders:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = touched_reminder(request, pk)
    if request.method != "POST":
        return render(request, "reminders/discard.html", {"reminder": reminder})
    try:
        drafts.discard(reminder, by=user_of(request))
    except NotPossibleError as error:
        messages.warning(request, str(error))
        return redirect("reminders:page", pk)
    messages.success(request, "The draft is gone.")
    return redirect("reminders:list")


@login_required
@require_POST
def switch_off(request: HttpRequest, pk: int) -> HttpResponse:
    scheduling.switch_off(touched_reminder(request, pk), by=user_of(request))
    messages.success(request, "It is switched off: it fires no more until you schedule it again.")
    return redirect("reminders:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def fire_now(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first, with the number and the forecast. The key in the form makes two clicks one run."""
    reminder = touched_reminder(request, pk)
    now = timezone.now()
    late = why_not_now(reminder, now)
    undecided = request.method == "POST" and "without" not in request.POST and headcount(reminder).short > 0
    if request.method != "POST" or undecided or late:
        reached = headcount(reminder)
        context = {
            "why_not_now": late,
            "reminder": reminder,
            "audience": reached,
            "undecided": undecided,
            "forecast": forecast(reminder, now=now, fires_at=now, reached=reached),
            "key": uuid4(),
        }
        return render(request, "reminders/fire.html", context)
    try:
        refuse_drafts(reminder)
        run = fire(reminder, key=_key(request), by=user_of(request))
    except (NothingToSendError, WrongStateError) as error:
        messages.error(request, str(error))
        return redirect("reminders:page", pk)
    return redirect("runs:page", run.pk)


@login_required
@require_GET
def count_again(request: HttpRequest, pk: int) -> JsonResponse:
    """Whether the number of recipients that a page shows has changed since it was counted."""
    return JsonResponse({"changed": recount(seen_reminder(request, pk))})


def _key(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid4()
