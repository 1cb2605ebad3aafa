"""The page behind the one-time address of an invitation."""

from http import HTTPStatus

from allauth.account.models import EmailAddress
from django.contrib import messages
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import posted, user_of
from accounts.models import User
from people import team
from people.models import Invitation
from people.pages.forms import JoinForm
from people.team import TeamError

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Ask, then accept: as the person who is logged in, or with a new account. A GET accepts nothing."""
    invitation = team.find(token)
    if invitation is None:
        return render(request, "people/join_ended.html", status=HTTPStatus.GONE)
    if request.user.is_authenticated:
        return _join(request, token, invitation)
    form = JoinForm(posted(request))
    if form.is_valid():
        person = _made(form, token, invitation)
        if person is not None:
            login(request, person, backend=BACKEND)
            return _welcome(request, invitation)
    return render(request, "people/join.html", {"invitation": invitation, "form": form})


def _join(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    if request.method != "POST":
        return render(request, "people/join.html", {"invitation": invitation})
    try:
        team.accept(token, by=user_of(request))
    except TeamError as error:
        messages.error(request, str(error))
        return redirect("people:team")
    return _welcome(request, invitation)


def _made(form: JoinForm, token: str, invitation: Invitation) -> User | None:
    """Make the account and accept, both or none."""
    try:
        with transaction.atomic():
            person: User = form.save(commit=False)
            person.email = invitation.email
            person.save()
            if invitation.mailed:  # who opens the address has read the mail
                EmailAddress.objects.create(user=person, email=person.email, verified=True, primary=True)
            team.accept(token, by=person)
    except TeamError as error:
        form.add_error(None, str(error))
        return None
    return person


def _welcome(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    messages.success(request, f"Welcome to the team of {invitation.owner}.")
    return redirect("dashboard")
