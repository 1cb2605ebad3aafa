"""Teams: inviting, accepting once, changing roles, leaving, handing over."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone

from accounts.models import Role, TeamMate, User
from accounts.roles import may_touch, visible
from api import keys
from api.models import ApiKey
from api.scopes import Scope
from people import leaving, team
from people.models import Invitation
from people.team import TeamError
from tests.factories import AccountFactory, OperatorFactory, TeamMateFactory

pytestmark = pytest.mark.django_db


def invited(owner: User, role: Role = Role.SEND, *, by: User | None = None) -> team.Issued:
    return team.invite(owner, email="new@example.com", role=role, days=7, by=by or owner)


def test_who_accepts_becomes_a_member_with_the_role(owner: User, stranger: User) -> None:
    account = AccountFactory.create(owner=owner)
    team.accept(invited(owner).token, by=stranger)
    assert may_touch(account, stranger, Role.SEND)
    assert not may_touch(account, stranger, Role.MANAGE)


def test_an_invitation_works_once(owner: User, stranger: User) -> None:
    issued = invited(owner)
    team.accept(issued.token, by=stranger)
    with pytest.raises(TeamError, match="was used"):
        team.accept(issued.token, by=OperatorFactory.create())


@pytest.mark.django_db(transaction=True)
def test_two_who_accept_at_once_become_one_member() -> None:
    owner, people = OperatorFactory.create(), OperatorFactory.create_batch(4)
    token = invited(owner).token

    def accept(person: User) -> bool:
        try:
            team.accept(token, by=person)
        except TeamError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(accept, people)) == [False, False, False, True]
    assert TeamMate.objects.filter(owner=owner).count() == 1


def test_an_invitation_ends(owner: User, stranger: User) -> None:
    issued = invited(owner)
    with time_machine.travel(timezone.now() + timedelta(days=7, seconds=1), tick=False):
        assert team.find(issued.token) is None
        with pytest.raises(TeamError):
            team.accept(issued.token, by=stranger)


def test_a_withdrawn_or_unknown_invitation_is_refused(owner: User, stranger: User) -> None:
    issued = invited(owner)
    team.withdraw(issued.invitation, by=owner)
    for token in (issued.token, "", "x" * 43, issued.invitation.digest):
        with pytest.raises(TeamError):
            team.accept(token, by=stranger)


def test_a_second_invitation_of_one_address_replaces_the_first(owner: User, stranger: User) -> None:
    first, second = invited(owner), invited(owner, Role.READ)
    with pytest.raises(TeamError):
        team.accept(first.token, by=stranger)
    assert team.accept(second.token, by=stranger).role == Role.READ


def test_an_invitation_never_lowers_a_role_and_is_not_for_oneself(owner: User, mate: User) -> None:
    assert team.accept(invited(owner, Role.READ).token, by=mate).role == Role.MANAGE
    with pytest.raises(TeamError, match="your own team"):
        team.accept(invited(owner).token, by=owner)


def test_the_secret_is_not_stored(owner: User) -> None:
    issued = invited(owner)
    assert issued.token not in str(Invitation.objects.values().get())


def test_only_who_manages_invites_changes_and_removes(
    owner: User, sender: User, reader: User, stranger: User
) -> None:
    reads = TeamMate.objects.get(owner=owner, mate=reader)
    for person in (sender, reader, stranger):
        with pytest.raises(PermissionDenied):
            invited(owner, by=person)
        with pytest.raises(PermissionDenied):
            team.change_role(reads, Role.MANAGE, by=person)
    for person in (sender, stranger):
        with pytest.raises(PermissionDenied):
            team.remove(reads, by=person)
    reads.refresh_from_db()
    assert reads.role == Role.READ


def test_nobody_changes_their_own_role(owner: User, mate: User) -> None:
    with pytest.raises(PermissionDenied, match="your own role"):
        team.change_role(TeamMate.objects.get(owner=owner, mate=mate), Role.READ, by=mate)


def test_what_a_member_invited_ends_when_they_lose_the_role(owner: User, mate: User, stranger: User) -> None:
    issued, share = invited(owner, by=mate), TeamMate.objects.get(owner=owner, mate=mate)
    team.change_role(share, Role.SEND, by=owner)
    assert team.find(issued.token) is None
    team.change_role(share, Role.MANAGE, by=owner)
    team.remove(share, by=owner)
    TeamMateFactory.create(owner=owner, mate=mate, manage=True)  # invited again later
    with pytest.raises(TeamError):
        team.accept(issued.token, by=stranger)


def test_a_member_leaves_and_sees_nothing_more(owner: User, reader: User) -> None:
    account = AccountFactory.create(owner=owner)
    team.remove(TeamMate.objects.get(owner=owner, mate=reader), by=reader)
    assert account not in visible(type(account)._default_manager.all(), reader)


class TestHandingOver:
    def test_the_member_manages_everything_and_the_owner_is_out(self, owner: User, reader: User) -> None:
        account = AccountFactory.create(owner=owner)
        elsewhere = TeamMateFactory.create(mate=owner, manage=True)
        key = keys.issue(owner, name="program", scopes=[Scope.READ])
        issued = invited(owner)
        leaving.hand_over(owner, to=reader, by=owner)
        owner.refresh_from_db()
        account.refresh_from_db()
        assert account.owner == owner
        assert may_touch(account, reader, Role.MANAGE)
        assert not owner.has_usable_password()
        assert (owner.email, owner.is_staff, owner.is_superuser) == ("", False, False)
        assert ApiKey.objects.get(pk=key.key.pk).revoked_at is not None
        assert not TeamMate.objects.filter(pk=elsewhere.pk).exists()
        assert team.find(issued.token) is None

    def test_the_new_manager_invites_for_the_old_owner(
        self, owner: User, reader: User, stranger: User
    ) -> None:
        leaving.hand_over(owner, to=reader, by=owner)
        team.accept(invited(owner, by=reader).token, by=stranger)
        assert owner.mates.filter(mate=stranger).exists()

    def test_only_the_owner_or_a_superuser_hands_over_and_only_to_a_member(
        self, owner: User, mate: User, staff: User, stranger: User
    ) -> None:
        for person in (mate, staff, stranger):
            with pytest.raises(PermissionDenied):
                leaving.hand_over(owner, to=mate, by=person)
        with pytest.raises(TeamError, match="not in your team"):
            leaving.hand_over(owner, to=stranger, by=owner)

    def test_the_last_superuser_stays(self, mate: User, owner: User) -> None:
        User.objects.filter(pk=owner.pk).update(is_superuser=True)
        with pytest.raises(TeamError, match="only superuser"):
            leaving.hand_over(owner, to=mate, by=User.objects.get(pk=owner.pk))
