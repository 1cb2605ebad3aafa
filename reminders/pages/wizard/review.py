"""The last step: a checklist, the forecast, and the button that schedules or sends."""

from urllib.parse import urlencode
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.access import user_of
from accounts.models import Approval, Role
from accounts.roles import may_touch
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from reminders import scheduling
from reminders.approvals.asking import waiting_for
from reminders.by_hand.send import send
from reminders.fire import key_of
from reminders.forecast import forecast
from reminders.headcount import headcount
from reminders.models import Reminder
from reminders.pages.actions import after_send
from reminders.pages.editing import edited
from reminders.pages.wizard import trial
from reminders.pages.wizard.checklist import button, checklist
from reminders.pages.wizard.forecast_plot import draw
from reminders.pages.wizard.steps import frame
from reminders.readiness import NotReadyError, why_not_now
from reminders.schedule_words import timing_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    if request.method != "POST":
        return _page(request, reminder)
    match request.POST.get("do"):
        case "test" | "code":
            return _try_out(request, reminder)
        case _:
            return _let_go(request, reminder)


def _try_out(request: HttpRequest, reminder: Reminder) -> HttpResponse:
    """Send a test or a code; show an error next to the typed values if that is not possible."""
    answer = trial.answer(request, reminder)
    if isinstance(answer, trial.Form):
        return _page(request, reminder, form=answer)
    asked = urlencode({"test": answer.id, "as": request.POST.get("as", "")})
    return redirect(f"{reverse('reminders:review', args=[reminder.pk])}?{asked}#test")


def _let_go(request: HttpRequest, reminder: Reminder) -> HttpResponse:
    """Schedule the reminder, and also fire it if that button was pressed. A double click acts once."""
    by = user_of(request)
    reached = headcount(reminder)
    if reached.short and "without" not in request.POST:
        return _page(request, reminder, undecided=True)
    sends = request.POST.get("do") == "send"
    if sends and why_not_now(reminder, timezone.now()):
        return _page(request, reminder)
    try:
        reminder = scheduling.schedule(reminder, by=by)
        if sends:
            key = key_of(request.POST.get("key", ""))
            return after_send(request, send(reminder, by=by, said=request.POST, key=key))
    except (NotReadyError, NothingToSendError, WrongStateError) as error:
        messages.error(request, str(error))
        return redirect("reminders:review", reminder.pk)
    manual = reminder.schedule == Reminder.Schedule.BY_HAND
    done = f"{reminder} is saved. Press “Send now” to send it." if manual else f"{reminder} is scheduled."
    messages.success(request, done)
    if waits := waiting_for(reminder, Approval.Kind.REMINDER):
        messages.info(request, f"It is sent only if somebody approves it before. {waits.why}")
    return redirect("reminders:page", reminder.pk)


def _page(
    request: HttpRequest,
    reminder: Reminder,
    *,
    form: trial.Form | None = None,
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
        "plot": draw(foreseen),
        "button": button(reminder, points.audience, firing, now=now),
        "why_not_now": why_not_now(reminder, now),
        "by_hand": reminder.schedule == Reminder.Schedule.BY_HAND,
        "key": uuid4(),
        "may_send": may_touch(reminder, request.user, Role.SEND),
        "trial": form or trial.form_of(request, reminder, points.accounts),
    }
    return render(request, "reminders/wizard/review.html", context)
