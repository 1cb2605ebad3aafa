"""The last step: what will happen, and the button that makes it happen."""

from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from delivery import tickets
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from delivery.tickets import Ticket
from reminders import scheduling
from reminders.access import touched_reminder, user_of
from reminders.checklist import button, checklist
from reminders.course_drawing import draw
from reminders.drafts import NotPossibleError
from reminders.fire import fire
from reminders.headcount import headcount
from reminders.models import Reminder
from reminders.planning import forecast
from reminders.readiness import NotReadyError, why_not_now
from reminders.timetable_words import timing_of
from reminders.trial import try_out
from reminders.wizard.steps import frame


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = touched_reminder(request, pk)
    if request.method != "POST":
        return _page(request, reminder)
    return _try_out(request, reminder) if request.POST.get("do") == "test" else _let_go(request, reminder)


@login_required
@require_GET
def test_result(request: HttpRequest, pk: int, ticket: str) -> HttpResponse:
    """What became of a test, asked for until it is known."""
    return render(
        request,
        "reminders/wizard/_test_result.html",
        {"test": _ticket(touched_reminder(request, pk), ticket)},
    )


def _try_out(request: HttpRequest, reminder: Reminder) -> HttpResponse:
    address = request.POST.get("to", "")
    try:
        ticket = try_out(
            reminder, account_id=request.POST.get("from", ""), address=address, by=user_of(request)
        )
    except NotPossibleError as error:
        return _page(request, reminder, test_error=str(error), test_to=address)
    return redirect(f"{reverse('reminders:review', args=[reminder.pk])}?test={ticket.id}#test")


def _ticket(reminder: Reminder, ticket_id: str) -> Ticket | None:
    found = tickets.find(ticket_id) if ticket_id else None
    return found if found is not None and found.reminder_id == reminder.pk else None


def _let_go(request: HttpRequest, reminder: Reminder) -> HttpResponse:
    """Schedule it, and fire it too where that was the button. Pressed twice, it happens once."""
    by = user_of(request)
    reached = headcount(reminder)
    if reached.short and "without" not in request.POST:
        return _page(request, reminder, undecided=True)
    if reached.short and not reached.complete and request.POST.get("do") == "send":
        messages.error(request, "Nobody would get it: all of them lack a value for the message.")
        return redirect("reminders:review", reminder.pk)
    if request.POST.get("do") == "send" and why_not_now(reminder, timezone.now()):
        return _page(request, reminder)
    try:
        reminder = scheduling.schedule(reminder, by=by)
        if request.POST.get("do") == "send":
            run = fire(reminder, key=_key(request), by=by)
            return redirect("runs:page", run.pk)
    except (NotReadyError, NothingToSendError, WrongStateError) as error:
        messages.error(request, str(error))
        return redirect("reminders:review", reminder.pk)
    messages.success(request, f"{reminder} is scheduled.")
    return redirect("reminders:page", reminder.pk)


def _page(
    request: HttpRequest,
    reminder: Reminder,
    *,
    test_error: str = "",
    test_to: str | None = None,
    undecided: bool = False,
) -> HttpResponse:
    now = timezone.now()
    points, timing = checklist(reminder, now=now), timing_of(reminder, now=now)
    firing = timing.firings[0] if timing.firings else None
    foreseen = forecast(reminder, now=now, fires_at=firing, reached=points.audience)
    context = frame(reminder, "review", points.audience) | {
        "checklist": points,
        "audience": points.audience,
        "undecided": undecided,
        "timing": timing,
        "forecast": foreseen,
        "course": draw(foreseen),
        "button": button(reminder, points.audience, firing, now=now),
        "why_not_now": why_not_now(reminder, now),
        "by_hand": reminder.schedule == Reminder.Schedule.BY_HAND,
        "key": uuid4(),
        "test": _ticket(reminder, request.GET.get("test", "")),
        "test_error": test_error,
        "test_to": next((a.own_address for a in points.accounts), "") if test_to is None else test_to,
    }
    return render(request, "reminders/wizard/review.html", context)


def _key(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid4()
