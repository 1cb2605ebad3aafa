"""The number of recipients of a reminder: counted each time where it is small, kept for a while where it is large."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks
from redis import Redis

from accounts.models import Recipient, User
from reminders import audience, headcount
from reminders.headcount import Texts
from reminders.models import Reminder
from tests.factories import AccountFactory, PartFactory, RecipientFactory, ReminderFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


@pytest.fixture
def reminder(owner: User, redis: Redis) -> Reminder:
    account = AccountFactory.create(owner=owner)
    groups = RecipientFactory.create_batch(
        3, owner=owner, group=True, account=account, fields={"city": "Ipoh"}
    )
    made: Reminder = ReminderFactory.create(owner=owner, accounts=[account], recipients=groups, parts=0)
    PartFactory.create(reminder=made, text="{{ city }}")
    return made


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are many."""
    monkeypatch.setattr(headcount, "KEPT_ABOVE", 2)


def opt_out_one() -> None:
    first = Recipient.objects.order_by("pk").values("pk")[:1]
    Recipient.objects.filter(pk__in=first).update(opted_out_at=NOON, fields={})


def test_few_are_counted_each_time(reminder: Reminder) -> None:
    assert headcount.headcount(reminder).reached == 3
    opt_out_one()
    assert headcount.headcount(reminder).reached == 2


def test_many_are_kept_as_they_were_counted(
    reminder: Reminder, many: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    counted = headcount.headcount(reminder)
    opt_out_one()
    with django_assert_num_queries(3):  # its accounts, and what it says
        assert headcount.headcount(reminder) == counted


def test_a_number_that_is_not_fresh_says_when_it_was_counted_and_is_counted_again(
    reminder: Reminder, many: None, client: Client, owner: User
) -> None:
    client.force_login(owner)
    address = reverse("reminders:count", args=[reminder.pk])
    with time_machine.travel(NOON, tick=False) as clock:
        headcount.headcount(reminder)
        assert client.get(address).json() == {"changed": False}
        clock.shift(timedelta(minutes=1))
        assert headcount.headcount(reminder).counted_at == NOON
        page = client.get(reverse("reminders:page", args=[reminder.pk])).content.decode()
        assert f'data-recount="{address}"' in page
        opt_out_one()
        assert client.get(address).json() == {"changed": True}
        assert headcount.headcount(reminder).reached == 2
        assert headcount.headcount(reminder).counted_at is None


def test_another_choice_is_counted_at_once(
    reminder: Reminder,
    many: None,
    owner: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    headcount.headcount(reminder)
    with django_capture_on_commit_callbacks(execute=True):
        audience.choose(reminder, Recipient.objects.filter(pk=_another(owner).pk), by=owner)
    assert headcount.headcount(reminder).reached == 4


def test_other_variables_are_counted_anew(reminder: Reminder, many: None) -> None:
    assert headcount.headcount(reminder).lacking == {}
    assert headcount.headcount(reminder, texts=Texts(first=["{{ street }}"])).lacking == {"street": 3}


def _another(owner: User) -> Recipient:
    made: Recipient = RecipientFactory.create(owner=owner, group=True)
    return made
