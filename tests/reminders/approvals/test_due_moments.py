"""Due moments: what nobody approved is recorded and told, and never sent; what was approved goes on."""

from datetime import timedelta

import pytest
import time_machine
from pytest_django import DjangoAssertNumQueries

from accounts.models import Account, Approval, User
from activity.models import Notification
from delivery import lifecycle
from delivery.models import Run
from delivery.states import RunStatus
from reminders import due, scheduling
from reminders.approvals import due_moments
from reminders.approvals.deciding import approve
from reminders.fire import load_for_freezing
from reminders.models import Part, Reminder
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis", "traveling")]

State = Approval.State


def come_due(reminder: Reminder) -> Run:
    """Let its next moment come, and return what became of it."""
    reminder.refresh_from_db()
    assert reminder.next_fire_at is not None
    for open_run in Run.objects.open():  # none is in the way
        lifecycle.cancel(open_run)
    with time_machine.travel(reminder.next_fire_at + timedelta(seconds=1), tick=False):
        due.tick()
    return Run.objects.filter(reminder=reminder).latest("pk")


def approve_it(reminder: Reminder, by: User) -> None:
    found = Approval.objects.waiting().get(reminder=reminder)
    approve(found, content=found.content, by=by)


@pytest.fixture
def daily(team: User) -> Reminder:
    tag = TagFactory.create(owner=team)
    RecipientFactory.create_batch(10, owner=team, tags=[tag])
    found = ReminderFactory.create(
        owner=team, name="Daily", tags=[tag], repeating=True, scheduled=True, around_the_clock=True
    )
    return scheduling.schedule(found, by=team)


def test_a_moment_without_approval_passes_and_is_told(reminder: Reminder, owner: User, sender: User) -> None:
    scheduling.schedule(reminder, by=owner)
    run = come_due(reminder)
    assert run.status == RunStatus.SKIPPED
    assert run.summary.startswith("Not sent: What goes to more than 2 recipients needs approval")
    assert Approval.objects.get().state == State.EXPIRED
    titles = {each.owner: each.title for each in Notification.objects.order_by("pk")}
    assert titles == {owner: "Reminder skipped", sender: "Not approved in time: Rent"}
    reminder.refresh_from_db()
    assert reminder.status == Reminder.Status.DONE


def test_an_approved_moment_leaves(reminder: Reminder, owner: User, sender: User) -> None:
    scheduling.schedule(reminder, by=owner)
    approve_it(reminder, sender)
    assert come_due(reminder).total == 3


def test_cron_moments_of_an_approved_reminder_go_on(daily: Reminder, sender: User) -> None:
    approve_it(daily, sender)
    assert [come_due(daily).total for _ in range(3)] == [10, 10, 10]
    assert Approval.objects.count() == 1


def test_a_tag_that_grows_a_tenth_is_covered_and_more_asks_again(
    daily: Reminder, owner: User, sender: User
) -> None:
    approve_it(daily, sender)
    tag = daily.tags.get()
    RecipientFactory.create(owner=owner, tags=[tag])
    assert come_due(daily).total == 11
    RecipientFactory.create(owner=owner, tags=[tag])
    assert come_due(daily).status == RunStatus.SKIPPED
    again = Approval.objects.waiting().get()
    assert again.recipients == 12
    assert Notification.objects.filter(owner=sender, key__contains=":passed:").exists()


def test_an_edit_from_anywhere_holds_the_next_moment(daily: Reminder, sender: User) -> None:
    """Also one row, changed past every door."""
    approve_it(daily, sender)
    Part.objects.filter(reminder=daily).update(text="Other words")
    run = come_due(daily)
    assert run.status == RunStatus.SKIPPED
    assert "It was not approved as it is now." in run.summary
    approve_it(daily, sender)
    assert come_due(daily).total == 10


def test_an_account_that_is_marked_later_holds_the_next_moment(owner: User, sender: User) -> None:
    account = AccountFactory.create(owner=owner)
    found = ReminderFactory.create(
        owner=owner, accounts=[account], recipients=1, repeating=True, scheduled=True, around_the_clock=True
    )
    scheduling.schedule(found, by=owner)
    Account.objects.filter(pk=account.pk).update(needs_approval=True)
    assert come_due(found).status == RunStatus.SKIPPED
    assert Approval.objects.waiting().get().recipients == 1


def test_where_nobody_wants_it_a_batch_is_asked_once(
    owner: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    reminders = ReminderFactory.create_batch(5, owner=owner, recipients=1, scheduled=True)
    load_for_freezing(reminders)
    with django_assert_num_queries(1):
        assert due_moments.held(reminders) == {}


def test_small_reminders_of_an_owner_with_a_number_are_sized_together(
    team: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Where the installation has a number, every due reminder has one."""
    reminders = ReminderFactory.create_batch(5, owner=team, recipients=2, scheduled=True)
    load_for_freezing(reminders)
    with django_assert_num_queries(2):
        assert due_moments.held(reminders) == {}


def test_a_reminder_that_counts_somebody_twice_is_counted_exactly(team: User) -> None:
    tag = TagFactory.create(owner=team)
    people = RecipientFactory.create_batch(2, owner=team, tags=[tag])
    found = ReminderFactory.create(owner=team, recipients=people, tags=[tag], scheduled=True)
    load_for_freezing([found])
    assert due_moments.held([found]) == {}
