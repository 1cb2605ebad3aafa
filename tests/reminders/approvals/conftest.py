"""A team of two that wants a second person above two recipients."""

import pytest

from accounts.models import User
from reminders.models import Reminder
from tests.factories import ApprovalNumberFactory, ReminderFactory


@pytest.fixture
def team(owner: User, sender: User) -> User:
    """The owner, whose sender could approve."""
    ApprovalNumberFactory.create(owner=owner, above=2)
    return owner


@pytest.fixture
def reminder(team: User) -> Reminder:
    """Three recipients, in an hour."""
    return ReminderFactory.create(
        owner=team, name="Rent", recipients=3, scheduled=True, around_the_clock=True
    )


@pytest.fixture
def by_hand(team: User) -> Reminder:
    return ReminderFactory.create(
        owner=team,
        name="Fair",
        recipients=3,
        scheduled=True,
        by_hand=True,
        around_the_clock=True,
        fire_at=None,
    )
