"""The number of an owner and the mark of an account: stricter at once, looser only with a second person."""

import pytest
from django.core.exceptions import PermissionDenied
from pytest_django import Settings

from accounts.approvals import needs, strictness
from accounts.approvals.strictness import StrictnessError
from accounts.models import Account, Approval, User
from audit.models import Entry
from reminders.approvals.deciding import approve
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db


def test_a_stricter_number_holds_at_once_and_is_recorded(owner: User, sender: User) -> None:
    assert strictness.set_number(owner, 100, by=owner) is None
    assert needs.number_of(owner.pk) == 100
    entry = Entry.objects.get(action="approval.number")
    assert (entry.before, entry.after) == ({"above": None}, {"above": 100})


def test_nobody_locks_themselves_out(owner: User, writer: User) -> None:
    """A member with Write could not approve."""
    with pytest.raises(StrictnessError, match="Nobody else could approve"):
        strictness.set_number(owner, 100, by=owner)
    with pytest.raises(StrictnessError):
        strictness.mark(AccountFactory.create(owner=owner), by=owner)
    assert needs.number_of(owner.pk) is None


def test_a_looser_number_waits_for_a_second_person(owner: User, sender: User) -> None:
    strictness.set_number(owner, 100, by=owner)
    waits = strictness.set_number(owner, None, by=owner)
    assert waits is not None
    assert needs.number_of(owner.pk) == 100
    with pytest.raises(PermissionDenied, match="You asked for this yourself"):
        approve(waits, content=waits.content, by=owner)
    approve(waits, content=waits.content, by=sender)
    assert needs.number_of(owner.pk) is None


def test_the_number_of_the_installation_cannot_be_exceeded(
    owner: User, sender: User, settings: Settings
) -> None:
    settings.APPROVAL_ABOVE = 50
    with pytest.raises(StrictnessError, match="above 50"):
        strictness.set_number(owner, 100, by=owner)
    strictness.set_number(owner, 20, by=owner)
    assert needs.numbers_of([owner.pk, sender.pk]) == {owner.pk: 20, sender.pk: 50}


def test_a_mark_is_lifted_by_two(owner: User, mate: User) -> None:
    account = AccountFactory.create(owner=owner)
    strictness.mark(account, by=owner)
    waits = strictness.ask_to_lift(account, by=owner)
    assert Account.objects.get(pk=account.pk).needs_approval
    approve(waits, content=waits.content, by=mate)
    assert not Account.objects.get(pk=account.pk).needs_approval
    assert Entry.objects.filter(action="account.approval").count() == 2


def test_it_needs_the_role_manage(owner: User, sender: User) -> None:
    with pytest.raises(PermissionDenied):
        strictness.set_number(owner, 100, by=sender)
    with pytest.raises(PermissionDenied):
        strictness.mark(AccountFactory.create(owner=owner), by=sender)


def test_asking_twice_is_one_request(owner: User, sender: User) -> None:
    strictness.set_number(owner, 100, by=owner)
    first = strictness.set_number(owner, 200, by=owner)
    assert strictness.set_number(owner, 200, by=owner) == first
    assert strictness.set_number(owner, 300, by=owner) != first
    assert Approval.objects.waiting().count() == 1
