"""The page that widens the delivery hours of one run. The reminder keeps its own."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.access import touched, user_of
from accounts.models import Role
from delivery import lifecycle
from delivery.models import Run
from delivery.run_actions import wait_words
from delivery.states import IllegalMoveError

HOURS = [(hour, f"{hour:02}:00") for hour in range(25)]


class HoursForm(forms.Form):
    """The hours of one day in which a run may send."""

    start = forms.TypedChoiceField(label="From", choices=HOURS[:24], coerce=int)
    end = forms.TypedChoiceField(label="Until", choices=HOURS[1:], coerce=int)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def hours(request: HttpRequest, pk: int) -> HttpResponse:
    run = touched(Run.objects.select_related("reminder", "owner"), request, pk, Role.SEND)
    shown = {"start": run.window_start_hour, "end": run.window_end_hour}
    form = HoursForm(request.POST) if request.method == "POST" else HoursForm(initial=shown)
    if request.method == "POST" and form.is_valid():
        start, end = form.cleaned_data["start"], form.cleaned_data["end"]
        try:
            run = lifecycle.change_hours(run, start_hour=start, end_hour=end, by=user_of(request))
        except IllegalMoveError as error:
            form.add_error(None, str(error))
        else:
            words = f"Delivery hours of this run: {start:02}:00 to {end:02}:00. {wait_words([run])}"
            messages.success(request, words.strip())
            return redirect("runs:page", pk)
    return render(request, "runs/hours.html", {"run": run, "form": form, "now": timezone.now()})
