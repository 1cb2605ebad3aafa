"""A lock of first contacts: those whom the account never wrote to wait, all others go on."""

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import Account, Recipient, User
from activity.models import Notification
from delivery import lifecycle
from delivery.models import RunTarget
from delivery.sessions import first_contacts
from delivery.states import PauseReason
from reminders.fire import fire
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, RunFactory, RunTargetFactory


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Office phone")


@pytest.fixture
def people(owner: User, account: Account) -> dict[str, Recipient]:
    """One of each kind, by how well the account knows them."""
    found = {
        "new": RecipientFactory.create(owner=owner),
        "wrote to us": RecipientFactory.create(owner=owner, last_inbound_at=timezone.now()),
        "got one before": RecipientFactory.create(owner=owner),
        "was refused before": RecipientFactory.create(owner=owner),
        "came back before": RecipientFactory.create(owner=owner),
        "known to another account": RecipientFactory.create(owner=owner),
        "group": RecipientFactory.create(owner=owner, group=True),
    }
    earlier = RunFactory.create(reminder__owner=owner, success=True)
    RunTargetFactory.create(run=earlier, account=account, recipient=found["got one before"], sent=True)
    RunTargetFactory.create(
        run=earlier, account=account, recipient=found["was refused before"], sent=True, error="463"
    )
    RunTargetFactory.create(run=earlier, account=account, recipient=found["came back before"], returned=True)
    RunTargetFactory.create(run=earlier, recipient=found["known to another account"], sent=True)
    return found


FIRST = {"new", "was refused before", "came back before", "known to another account"}


def held(people: dict[str, Recipient]) -> set[str]:
    """Return the recipients whose targets wait."""
    waiting = RunTarget.objects.filter(status="pending", not_before__gt=timezone.now())
    ids = set(waiting.values_list("recipient_id", flat=True))
    return {name for name, recipient in people.items() if recipient.pk in ids}


def run_to(owner: User, account: Account, people: dict[str, Recipient]) -> object:
    reminder = ReminderFactory.create(
        owner=owner,
        accounts=[account],
        recipients=list(people.values()),
        window_start_hour=0,
        window_end_hour=24,
    )
    return fire(reminder)


def lock(account: Account, hours: float = 6) -> None:
    now = timezone.now()
    first_contacts.lock(account, at=now, until=now + timedelta(hours=hours))
    account.refresh_from_db()


def test_a_lock_in_the_middle_of_a_run_holds_only_first_contacts(
    owner: User, account: Account, people: dict[str, Recipient]
) -> None:
    run_to(owner, account, people)
    assert held(people) == set()
    lock(account)
    assert held(people) == FIRST


def test_a_run_that_is_fired_under_a_lock_holds_them_too(
    owner: User, account: Account, people: dict[str, Recipient]
) -> None:
    lock(account)
    run_to(owner, account, people)
    assert held(people) == FIRST
    assert set(
        RunTarget.objects.filter(not_before__gt=timezone.now()).values_list("not_before", flat=True)
    ) == {account.first_contacts_until}


def test_a_run_that_is_resumed_under_a_lock_holds_them_too(
    owner: User, account: Account, people: dict[str, Recipient]
) -> None:
    run = run_to(owner, account, people)
    paused = lifecycle.pause(run, reason=PauseReason.OPERATOR, by=owner)  # type: ignore[arg-type]  # a run
    lock(account)
    lifecycle.resume(paused, by=owner)
    assert held(people) == FIRST


def test_a_person_may_lift_the_lock(owner: User, account: Account, people: dict[str, Recipient]) -> None:
    run_to(owner, account, people)
    lock(account)
    first_contacts.unlock(account, by=owner)
    assert held(people) == set()
    account.refresh_from_db()
    assert account.first_contacts_until is None


def test_a_stranger_lifts_nothing(account: Account, stranger: User) -> None:
    lock(account)
    with pytest.raises(PermissionDenied):
        first_contacts.unlock(account, by=stranger)


def test_other_accounts_go_on(owner: User, account: Account, people: dict[str, Recipient]) -> None:
    run_to(owner, AccountFactory.create(owner=owner), people)
    lock(account)
    assert held(people) == set()


def test_a_lock_is_told_once_and_only_grows(
    owner: User, account: Account, django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        lock(account, hours=6)
        lock(account, hours=8)
        until = account.first_contacts_until
        lock(account, hours=1)
    assert account.first_contacts_until == until
    assert [told.title for told in Notification.objects.filter(owner=owner)] == [
        "Office phone may not write to new people"
    ]


def test_what_was_under_way_when_a_long_lock_came_waits_for_it_too(
    owner: User, account: Account, people: dict[str, Recipient]
) -> None:
    """A message that fails for the lock after that was told for longer than a day is not tried again at once."""
    lock(account, hours=72)
    run_to(owner, account, people)
    RunTarget.objects.update(not_before=timezone.now())  # as after landing
    first_contacts.lock(account, at=timezone.now(), until=None)
    assert held(people) == FIRST


def test_a_lock_without_an_end_lasts_a_day_and_one_that_is_over_is_none(account: Account) -> None:
    now = timezone.now()
    first_contacts.lock(account, at=now - timedelta(days=3), until=None)
    account.refresh_from_db()
    assert account.first_contacts_until is None
    first_contacts.lock(account, at=now, until=None)
    account.refresh_from_db()
    assert account.first_contacts_until == now + timedelta(days=1)
