"""The page that edits the follow-ups of a reminder: each has a text and a delay without a reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.access import user_of
from accounts.generics import ModelForm
from accounts.models import User
from audit.record import record
from delivery.wordings import as_plain, why_not
from reminders.drafts import locked_to_edit
from reminders.headcount import headcount, lacks, texts_of
from reminders.message import quiet_for
from reminders.models import FollowUpStep, Reminder
from reminders.models.followup import Urgency
from reminders.pages.editing import edited

MOST_STEPS = 3
LONGEST_TEXT = 4096
MONTH_HOURS = 720
NAMES = ("First follow-up", "Second follow-up", "Third follow-up")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedStep:
    """One follow-up as typed in the form."""

    position: int
    after_hours: float
    text: str
    urgency: str


class StepForm(forms.Form):
    """The form of one follow-up. An empty text means no follow-up."""

    text = forms.CharField(
        label="Text",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Variables and {one|other} work as in the message. Leave empty for no follow-up.",
    )
    after_hours = forms.FloatField(
        label="Hours without a reply",
        required=False,
        min_value=0.1,
        max_value=MONTH_HOURS,
        initial=24,
    )
    urgency = forms.ChoiceField(
        label="Urgency",
        choices=Urgency.choices,
        initial=Urgency.MEDIUM,
        help_text="When many wait, only follow-ups with high urgency are added.",
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("text") and not given.get("after_hours") and "after_hours" not in self.errors:
            self.add_error("after_hours", "Enter the number of hours.")
        if trouble := why_not(given.get("text", "")):
            self.add_error("text", trouble)
        return given


class NumbersForm(ModelForm[Reminder]):
    """The reminder's own limits; the settings apply to empty fields."""

    follow_up_max_attempts = forms.IntegerField(
        label="Most follow-ups without a reply", required=False, min_value=1, max_value=MOST_STEPS
    )
    follow_up_cooldown_hours = forms.FloatField(
        label="Then no messages for (hours)", required=False, min_value=0.1, max_value=8760
    )
    second_message_hours = forms.FloatField(
        label="A reply gets the second message within (hours)",
        required=False,
        min_value=0.1,
        max_value=MONTH_HOURS,
    )

    class Meta:
        model = Reminder
        fields = ("follow_up_max_attempts", "follow_up_cooldown_hours", "second_message_hours")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields:
            self.fields[name].widget.attrs["placeholder"] = f"{getattr(settings, name.upper()):g}"


@transaction.atomic
def save(reminder: Reminder, steps: Sequence[TypedStep], *, by: User) -> None:
    """Save these steps and delete all others. A kept step is changed in place, so nobody gets it twice."""
    locked_to_edit(reminder, by=by)
    FollowUpStep.objects.filter(reminder=reminder).exclude(
        position__in=[step.position for step in steps]
    ).delete()
    told = {"follow_ups": [[step.after_hours, step.text, step.urgency] for step in steps]}
    record("reminder.changed", reminder, by=by, after=told, quiet=quiet_for(reminder))
    for step in steps:
        FollowUpStep.objects.update_or_create(
            reminder=reminder,
            position=step.position,
            defaults={
                "after_hours": step.after_hours,
                "text": step.text,
                "other_wordings": [],
                "urgency": step.urgency,
            },
        )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def steps(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    typed = request.POST if request.method == "POST" else None
    known = {step.position: step for step in reminder.follow_up_steps.all()}
    forms_ = [
        StepForm(typed, prefix=f"step-{place}", initial=_initial(known.get(place)))
        for place in range(MOST_STEPS)
    ]
    numbers = NumbersForm(typed, instance=reminder)
    # Every form is validated, so that all errors are shown at once.
    valid = [form.is_valid() for form in (*forms_, numbers)]
    if typed is not None and all(valid):
        with transaction.atomic():
            save(reminder, _typed(forms_), by=user_of(request))
            numbers.save()
        messages.success(request, "Follow-ups saved.")
        for lack in lacks(headcount(reminder), texts_of(reminder)):
            messages.warning(request, f"{lack} Fill it in for them, or remove it from the text.")
        return redirect("reminders:page", reminder.pk)
    context = {
        "reminder": reminder,
        "steps": list(zip(NAMES, forms_, strict=True)),
        "numbers": numbers,
    }
    return render(request, "reminders/follow_up_steps.html", context)


def _initial(step: FollowUpStep | None) -> dict[str, object]:
    if step is None:
        return {}
    text = as_plain(step.text) if step.other_wordings is None else step.text
    return {"text": text, "after_hours": f"{step.after_hours:g}", "urgency": step.urgency}


def _typed(forms_: Sequence[StepForm]) -> list[TypedStep]:
    given = [(place, form.cleaned_data) for place, form in enumerate(forms_)]
    return [
        TypedStep(
            position=place,
            after_hours=data["after_hours"],
            text=data["text"].replace("\0", ""),
            urgency=data["urgency"],
        )
        for place, data in given
        if data["text"]
    ]
