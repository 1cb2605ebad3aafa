"""The third step: the schedule and the delivery hours."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import user_of
from audit.record import differing, record, stored
from reminders import scheduling
from reminders.forecast import forecast
from reminders.message import quiet_for
from reminders.models import Reminder
from reminders.pages.editing import edited
from reminders.pages.wizard.steps import frame
from reminders.pages.wizard.when_form import WhenForm
from reminders.readiness import NotReadyError
from reminders.schedule_words import timing_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def when(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    if request.method != "POST":
        return _page(request, reminder, WhenForm(instance=reminder))
    form = WhenForm(request.POST, instance=reminder)
    verb = request.POST.get("do", "")
    if form.is_valid():
        try:
            scheduling.save_times(form.instance, by=user_of(request))
        except NotReadyError as error:
            form.add_error(None, " ".join(problem.sentence for problem in error.problems))
        else:
            return _onward(request, reminder, verb)
    elif verb == "back":
        _keep_what_is_valid(reminder, form)
        return redirect("reminders:recipients", pk)
    return _page(request, edited(request, pk), form)


@login_required
@require_POST
def when_preview(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the chosen schedule in words, requested while choosing; of a draft, all that is valid is saved."""
    reminder = edited(request, pk)
    form = WhenForm(request.POST, instance=reminder)
    valid, saved = form.is_valid(), reminder.status == Reminder.Status.DRAFT
    _keep_what_is_valid(reminder, form)
    if not valid:
        context: dict[str, object] = {
            "reminder": reminder,
            "wrong": [" ".join(map(str, each)) for each in form.errors.values()],
            "saved": saved,
        }
        return render(request, "reminders/wizard/_timing.html", context)
    now = timezone.now()
    timing = timing_of(reminder, now=now)
    fires_at = timing.firings[0] if timing.firings else None
    context = {
        "reminder": reminder,
        "timing": timing,
        "forecast": forecast(reminder, now=now, fires_at=fires_at),
        "saved": saved,
    }
    return render(request, "reminders/wizard/_timing.html", context)


def _keep_what_is_valid(reminder: Reminder, form: WhenForm) -> None:
    """Save the valid fields of a draft: while the person chooses, and when they go back from an incomplete form."""
    if reminder.status != Reminder.Status.DRAFT:
        return
    window = {"window_start_hour", "window_end_hour"}
    broken = (window if window & set(form.errors) else set()) | set(form.errors)
    changes = {
        name: form.cleaned_data[name]
        for name in form.Meta.fields
        if name in form.cleaned_data and name not in broken
    }
    if changes.get("schedule") == Reminder.Schedule.ONCE and "at" not in broken:
        changes["fire_at"] = form.instance.fire_at
    if "gap_max" not in broken:
        changes |= {name: getattr(form.instance, name) for name in ("drip_gap_min", "drip_gap_max")}
    # A condition, since it may have been scheduled in another tab meanwhile.
    drafts = Reminder.objects.filter(pk=reminder.pk, status=Reminder.Status.DRAFT)
    with transaction.atomic():
        old, new = differing(stored(reminder, changes), changes)
        if new and drafts.update(**changes, updated_at=timezone.now()):
            record("reminder.changed", reminder, before=old, after=new, quiet=quiet_for(reminder))


def _onward(request: HttpRequest, reminder: Reminder, verb: str) -> HttpResponse:
    if verb == "back":
        return redirect("reminders:recipients", reminder.pk)
    if verb == "continue":
        return redirect("reminders:review", reminder.pk)
    if verb == "save":
        messages.success(request, "Times saved.")
        return redirect("reminders:page", reminder.pk)
    return redirect("reminders:when", reminder.pk)


def _page(request: HttpRequest, reminder: Reminder, form: WhenForm) -> HttpResponse:
    context = frame(reminder, "when") | {"form": form, "timing": timing_of(form.instance, now=timezone.now())}
    return render(request, "reminders/wizard/when.html", context)
