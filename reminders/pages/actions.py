"""The actions on a reminder from its page. Each is a POST; one that cannot be undone asks first."""

from uuid import uuid4

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import seen, touched, user_of
from accounts.models import Approval, Role
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from delivery.models import Run
from reminders import drafts, scheduling
from reminders.by_hand.last_look import LastLook, last_look
from reminders.by_hand.send import send
from reminders.drafts import NotPossibleError
from reminders.fire import key_of
from reminders.forecast import forecast
from reminders.headcount import recount
from reminders.models import Reminder
from reminders.pages.editing import edited


@login_required
@require_POST
def duplicate(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = touched(Reminder.objects.select_related("owner"), request, pk, Role.WRITE)
    copy = drafts.duplicate(reminder, by=user_of(request))
    messages.success(request, "This is the copy, saved as a draft. Choose when to send it.")
    return redirect("reminders:message", copy.pk)


@login_required
@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    try:
        drafts.archive(reminder, by=user_of(request))
    except NotPossibleError as error:
        messages.warning(request, str(error))
        return redirect("reminders:page", pk)
    messages.success(
        request, f"{reminder} is archived. You find it under Archived, and can unarchive it there."
    )
    return redirect("reminders:list")


@login_required
@require_POST
def unarchive(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    drafts.unarchive(reminder, by=user_of(request))
    messages.success(request, f"{reminder} is unarchived.")
    return redirect("reminders:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    if request.method != "POST":
        return render(request, "reminders/discard.html", {"reminder": reminder})
    try:
        drafts.discard(reminder, by=user_of(request))
    except NotPossibleError as error:
        messages.warning(request, str(error))
        return redirect("reminders:page", pk)
    messages.success(request, "Draft deleted.")
    return redirect("reminders:list")


@login_required
@require_POST
def switch_off(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = touched(Reminder.objects.select_related("owner"), request, pk, Role.SEND)
    scheduling.switch_off(reminder, by=user_of(request))
    messages.success(request, "Switched off. Nothing is sent until you schedule it again.")
    return redirect("reminders:page", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def fire_now(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask first, with all that a person should see before it leaves. The form's key makes two clicks one run."""
    reminder = touched(Reminder.objects.select_related("owner"), request, pk, Role.SEND)
    if request.method != "POST":
        return look_page(request, last_look(reminder, now=timezone.now()))
    try:
        key = key_of(request.POST.get("key", ""))
        found = send(reminder, by=user_of(request), said=request.POST, key=key)
    except (NothingToSendError, WrongStateError) as error:
        messages.error(request, str(error))
        return redirect("reminders:page", pk)
    return after_send(request, found)


def after_send(request: HttpRequest, found: Run | LastLook | Approval) -> HttpResponse:
    """Lead to the run; or ask what a person has to answer, or show what waits for a second person."""
    if isinstance(found, LastLook):
        return look_page(request, found)
    if isinstance(found, Approval):
        messages.info(
            request, f"Nothing is sent yet. {found.why} It is sent as soon as somebody approves it."
        )
        return redirect("approvals:page", found.pk)
    return redirect("runs:page", found.pk)


def look_page(request: HttpRequest, look: LastLook) -> HttpResponse:
    """Return the page that asks before a reminder leaves."""
    now = timezone.now()
    context = {
        "look": look,
        "reminder": look.reminder,
        "audience": look.audience,
        "undecided": request.method == "POST" and "without" not in request.POST,
        "forecast": forecast(look.reminder, now=now, fires_at=now, reached=look.audience),
        "undo_seconds": settings.UNDO_SECONDS,
        "key": uuid4(),
    }
    return render(request, "reminders/fire.html", context)


@login_required
@require_GET
def count_again(request: HttpRequest, pk: int) -> JsonResponse:
    """Return whether the number of recipients on a page has changed since it was counted."""
    return JsonResponse({"changed": recount(seen(Reminder.objects.select_related("owner"), request, pk))})
