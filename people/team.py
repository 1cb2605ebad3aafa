"""Changes a team: invites, accepts, changes roles, removes and leaves.

Every change locks the owner's row first and asks for the role after that: who lost the role a moment ago changes
nothing, and two people who accept one invitation at once become one member.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from accounts.models import Role, TeamMate, User
from accounts.roles import owners_for
from audit.record import record
from people.models import Invitation

MOST_OPEN = 100
LONGEST_DAYS = 30


class TeamError(ValueError):
    """The team cannot be changed like this. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new invitation, and the secret of its address, which nobody can read again."""

    invitation: Invitation
    token: str


@transaction.atomic
def invite(owner: User, *, email: str, role: Role, days: int, by: User) -> Issued:
    """Make an invitation; an open one for the same e-mail is withdrawn."""
    _lock(owner, by)
    if not 1 <= days <= LONGEST_DAYS:
        raise TeamError(f"Choose 1 to {LONGEST_DAYS} days.")
    now = timezone.now()
    mine = Invitation.objects.filter(owner=owner)
    mine.open(now).filter(email__iexact=email).update(withdrawn_at=now)
    if mine.open(now).count() >= MOST_OPEN:
        raise TeamError(f"There are {MOST_OPEN} open invitations. Withdraw one first.")
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        owner=owner,
        made_by=by,
        email=email,
        role=role,
        digest=_digest(token),
        ends_at=now + timedelta(days=days),
    )
    record(
        "team.invited", invitation, by=by, after={"email": email, "role": role, "ends_at": invitation.ends_at}
    )
    return Issued(invitation, token)


def find(token: str) -> Invitation | None:
    """Return the open invitation with this secret whose maker may still invite; else None."""
    found = (
        Invitation.objects.open(timezone.now())
        .select_related("owner", "made_by")
        .filter(digest=_digest(token), owner__is_active=True)
        .first()
    )
    return found if found is not None and _may_manage(found.owner, found.made_by) else None


@transaction.atomic
def accept(token: str, *, by: User) -> TeamMate:
    """Make the person a member. An invitation is accepted once; it never lowers the role that a member has."""
    invitation = find(token)
    if invitation is None:
        raise TeamError("This invitation has ended, was used or was withdrawn. Ask for a new one.")
    if invitation.owner_id == by.pk:
        raise TeamError("This invitation is into your own team. Open it as the person whom you invited.")
    User.objects.select_for_update(no_key=True).get(pk=invitation.owner_id)
    now = timezone.now()
    taken = Invitation.objects.open(now).filter(pk=invitation.pk).update(accepted_at=now, accepted_by=by)
    if not taken or not _may_manage(invitation.owner, invitation.made_by):
        raise TeamError("This invitation has ended, was used or was withdrawn. Ask for a new one.")
    mate, made = TeamMate.objects.get_or_create(
        owner=invitation.owner, mate=by, defaults={"role": invitation.role}
    )
    if not made and mate.role not in Role(invitation.role).holders:
        mate.role = invitation.role
        mate.save(update_fields=["role"])
    record("team.joined", invitation, by=by, after={"role": mate.role})
    return mate


@transaction.atomic
def withdraw(invitation: Invitation, *, by: User) -> None:
    _lock(invitation.owner, by)
    now = timezone.now()
    if Invitation.objects.open(now).filter(pk=invitation.pk).update(withdrawn_at=now):
        record("team.withdrew", invitation, by=by)


@transaction.atomic
def change_role(mate: TeamMate, role: Role, *, by: User) -> None:
    """Give a member another role. Nobody changes their own."""
    _lock(mate.owner, by)
    if mate.mate_id == by.pk:
        raise PermissionDenied("You may not change your own role. Ask the owner, or leave the team.")
    mate.role = role
    mate.save(update_fields=["role"])


@transaction.atomic
def remove(mate: TeamMate, *, by: User) -> None:
    """End a membership: by who manages the team, or by the member, who leaves."""
    if mate.mate_id == by.pk:
        User.objects.select_for_update(no_key=True).get(pk=mate.owner_id)
    else:
        _lock(mate.owner, by)
    # What a member invited ends with the membership.
    Invitation.objects.open(timezone.now()).filter(owner=mate.owner_id, made_by=mate.mate_id).update(
        withdrawn_at=timezone.now()
    )
    mate.delete()


def _lock(owner: User, by: User) -> None:
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if not _may_manage(owner, by):
        raise PermissionDenied(f"You may not change the team of {owner}. Ask its owner for the role Manage.")


def _may_manage(owner: User, by: User) -> bool:
    return by.is_active and owners_for(by, Role.MANAGE).filter(pk=owner.pk).exists()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
