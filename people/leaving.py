"""Hands over what a person owns to a member of their team, when the person leaves.

Nothing is moved: accounts, runs and the ledger stay with their owner, whose name goes on as a team without a login,
and the member manages it. So nothing pauses, no limit forgets what was sent, and it takes a moment.

1. The member gets the role Manage in the owner's team.
2. The owner can log in no more: no password, no second factor, no e-mail to reset one, no key, no rights of staff.
3. The owner's memberships in the teams of others end. So do the sessions, as the password changed, and open pages.
"""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.hashers import make_password
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import OwnAddress, Role, TeamMate, User
from activity.models import PushSubscription
from api.models import ApiKey
from audit.record import record
from people.models import Invitation
from people.team import TeamError


@transaction.atomic
def hand_over(owner: User, *, to: User, by: User) -> None:
    """Let the member `to` go on with everything of `owner`, who leaves: by the owner, or by a superuser."""
    owner = User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if by.pk != owner.pk and not (by.is_active and by.is_superuser):
        raise PermissionDenied("Only the owner or a superuser may hand over.")
    mate = TeamMate.objects.filter(owner=owner, mate=to, mate__is_active=True).first()
    if mate is None:
        raise TeamError(f"{to} is not in your team. Invite them first.")
    if (
        owner.is_superuser
        and not User.objects.filter(is_superuser=True, is_active=True).exclude(pk=owner.pk).exists()
    ):
        raise TeamError("You are the only superuser. Make another one first.")
    mate.role = Role.MANAGE
    mate.save(update_fields=["role"])
    _end_login(owner)
    record("person.handed_over", owner, by=by, after={"to": to.get_username()})


def _end_login(owner: User) -> None:
    now = timezone.now()
    owner.password, owner.email = make_password(None), ""
    owner.is_staff = owner.is_superuser = False
    owner.save(update_fields=["password", "email", "is_staff", "is_superuser"])
    User.objects.filter(pk=owner.pk).update(calendar_number=F("calendar_number") + 1)
    for rows in (Authenticator, EmailAddress, SocialAccount):
        rows.objects.filter(user=owner).delete()
    ApiKey.objects.filter(person=owner, revoked_at=None).update(revoked_at=now)
    PushSubscription.objects.filter(user=owner).delete()
    OwnAddress.objects.filter(person=owner).delete()
    for mate in TeamMate.objects.filter(mate=owner):
        mate.delete()
    Invitation.objects.open(now).filter(made_by=owner).update(withdrawn_at=now)
