"""The page of a team: its members, open invitations, and the teams that a person is in."""

from dataclasses import dataclass

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, user_of
from accounts.models import Role, TeamMate, User
from accounts.roles import owners_for
from people import leaving, mails, team
from people.models import Invitation
from people.pages import approval
from people.pages.approval import owner_of, team_address
from people.pages.forms import HandOverForm, InviteForm, RoleForm
from people.team import TeamError

MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A new invitation: mailed, or with an address to copy."""

    invitation: Invitation
    address: str


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show the team, and invite. The address of an invitation that was not mailed is shown once."""
    owner, sent = owner_of(request), None
    form = InviteForm(posted(request))
    if form.is_valid():
        sent = _invite(request, owner, form)
        if sent is not None and not sent.address:
            return redirect(team_address(request, owner))
    return _page(request, owner, form=InviteForm() if sent else form, sent=sent)


@login_required
@require_POST
def change_role(request: HttpRequest, pk: int) -> HttpResponse:
    mate, by = _mate(request, pk), user_of(request)
    form = RoleForm(request.POST)
    if form.is_valid():
        team.change_role(mate, Role(form.cleaned_data["role"]), by=by)
        messages.success(request, f"{mate.mate} has the role {mate.get_role_display()} now.")
    return redirect(team_address(request, mate.owner))


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then remove a member, or leave a team."""
    mate, by = _mate(request, pk), user_of(request)
    leaves = mate.mate_id == by.pk
    if request.method != "POST":
        back = reverse("people:team") if leaves else team_address(request, mate.owner)
        return render(request, "people/remove.html", {"each": mate, "leaves": leaves, "back": back})
    team.remove(mate, by=by)
    done = (
        f"You left the team of {mate.owner}."
        if leaves
        else f"{mate.mate} was removed. Their access ended at once."
    )
    messages.success(request, done)
    return redirect("people:team" if leaves else team_address(request, mate.owner))


@login_required
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    rows = Invitation.objects.filter(owner__in=owners_for(user_of(request), Role.MANAGE)).select_related(
        "owner"
    )
    invitation = get_object_or_404(rows, pk=pk)
    team.withdraw(invitation, by=user_of(request))
    messages.success(request, f"The invitation of {invitation.email} no longer works.")
    return redirect(team_address(request, invitation.owner))


@never_cache
@login_required
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_http_methods(["GET", "HEAD", "POST"])
def hand_over(request: HttpRequest) -> HttpResponse:
    """Ask to whom, then hand over and log out."""
    person = user_of(request)
    form = HandOverForm(posted(request), person=person)
    if form.is_valid():
        to = form.cleaned_data["to"]
        try:
            leaving.hand_over(person, to=to, by=person)
        except TeamError as error:
            form.add_error(None, str(error))
        else:
            logout(request)
            messages.success(request, f"{to} goes on with everything of yours. You are logged out.")
            return redirect("login")
    return render(request, "people/hand_over.html", {"form": form})


def _mate(request: HttpRequest, pk: int) -> TeamMate:
    """Return a membership that the person manages, or their own; what they may do is asked again under the lock."""
    person = user_of(request)
    rows = TeamMate.objects.select_related("owner", "mate")
    return get_object_or_404(
        rows.filter(owner__in=owners_for(person, Role.MANAGE)) | rows.filter(mate=person), pk=pk
    )


def _invite(request: HttpRequest, owner: User, form: InviteForm) -> Sent | None:
    given = form.cleaned_data
    try:
        issued = team.invite(
            owner, email=given["email"], role=Role(given["role"]), days=given["days"], by=user_of(request)
        )
    except TeamError as error:
        form.add_error(None, str(error))
        return None
    if mails.send_invitation(issued):
        Invitation.objects.filter(pk=issued.invitation.pk).update(mailed=True)
        messages.success(request, f"The invitation was sent to {given['email']}.")
        return Sent(invitation=issued.invitation, address="")
    address = request.build_absolute_uri(reverse("people:join", args=[issued.token]))
    return Sent(invitation=issued.invitation, address=address)


def _page(request: HttpRequest, owner: User, *, form: InviteForm, sent: Sent | None) -> HttpResponse:
    person = user_of(request)
    others = User.objects.filter(mates__mate=person, mates__role__in=Role.MANAGE.holders, is_active=True)
    context = {
        "owner": owner,
        "own": owner.pk == person.pk,
        "form": form,
        "sent": sent,
        "roles": RoleForm().fields["role"].choices,  # type: ignore[attr-defined]  # a choice field
        "mates": owner.mates.select_related("mate").order_by("mate__username")[:MOST_SHOWN],
        "invitations": Invitation.objects.open(timezone.now()).filter(owner=owner).select_related("made_by"),
        "teams": person.teams.select_related("owner").order_by("owner__username")[:MOST_SHOWN],
        "managed": others.order_by("username")[:MOST_SHOWN],
        "mails": mails.is_ready(),
        "approval": approval.card(owner, person),
    }
    return render(request, "people/team.html", context)
