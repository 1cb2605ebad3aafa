"""The card of a team's page that says above how many recipients a second person approves."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access import user_of
from accounts.approvals import strictness
from accounts.approvals.requests import others_of
from accounts.approvals.strictness import StrictnessError
from accounts.models import Role, User
from accounts.roles import owners_for

MOST = 10_000_000
MOST_NAMED = 5


class ApprovalForm(forms.Form):
    above = forms.IntegerField(
        label="Ask a second person above (recipients)",
        required=False,
        min_value=1,
        max_value=MOST,
        help_text="Empty: only where the installation or an account asks for it.",
    )


def card(owner: User, person: User) -> dict[str, Any]:
    """Return the form and what it says."""
    return {
        "form": ApprovalForm(initial={"above": strictness.own_number(owner)}),
        "installation": settings.APPROVAL_ABOVE,
        "others": [str(each) for each in others_of(owner.pk, but=[person.pk])[:MOST_NAMED]],
    }


@login_required
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    owner, by = owner_of(request), user_of(request)
    form = ApprovalForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Write a number from 1 to {MOST:,}, or nothing.")
        return redirect(team_address(request, owner))
    try:
        waits = strictness.set_number(owner, form.cleaned_data["above"], by=by)
    except StrictnessError as error:
        messages.error(request, str(error))
        return redirect(team_address(request, owner))
    if waits is not None:
        messages.info(request, "Nobody makes this less strict alone: it waits for approval now.")
        return redirect("approvals:page", waits.pk)
    messages.success(request, "Saved. It holds for everything that leaves from now on.")
    return redirect(team_address(request, owner))


def owner_of(request: HttpRequest) -> User:
    """Return whose team the page shows: one's own, or that of an owner who lets the person manage."""
    asked = request.GET.get("of", "")
    person = user_of(request)
    if not (asked.isascii() and asked.isdigit() and len(asked) < 19) or int(asked) == person.pk:
        return person
    return get_object_or_404(owners_for(person, Role.MANAGE), pk=int(asked))


def team_address(request: HttpRequest, owner: User) -> str:
    here = reverse("people:team")
    return here if owner.pk == user_of(request).pk else f"{here}?of={owner.pk}"
