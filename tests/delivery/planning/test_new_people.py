"""New people in plans and forecasts (SPEC N4)."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Account, User
from delivery.planning import new_people
from reminders.fire import fire
from reminders.forecast import forecast, forecast_run
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=UTC)


@pytest.fixture
def account(owner: User) -> Account:
    account = AccountFactory.create(owner=owner, name="Office")
    LimitFactory.create(account=account, new_per_day=10)
    return account


def test_review_says_how_many_are_new_and_when_the_last_is_written_to(owner: User, account: Account) -> None:
    to = RecipientFactory.create_batch(25, owner=owner) + RecipientFactory.create_batch(
        5, owner=owner, group=True
    )
    made = ReminderFactory.create(owner=owner, accounts=[account], recipients=to)
    with time_machine.travel(WEDNESDAY, tick=False):
        before = forecast(made, now=timezone.now())
        after = forecast_run(fire(made), now=timezone.now())
    for found in (before, after):
        assert found is not None
        assert found.sentence.startswith("25 of 30 are new to Office: 10 a day, finished about Fri 13 Mar")
        assert found.finishes_at is not None
        assert found.finishes_at.date() == (WEDNESDAY + timedelta(days=2)).date()
        assert not found.fits
        assert found.timeline.curve[-1].done == 30


def test_two_accounts_with_too_many_new_people_are_both_named(owner: User, account: Account) -> None:
    other = AccountFactory.create(owner=owner, name="Front desk")
    LimitFactory.create(account=other, new_per_day=5)
    made = ReminderFactory.create(
        owner=owner, accounts=[account, other], recipients=RecipientFactory.create_batch(60, owner=owner)
    )
    with time_machine.travel(WEDNESDAY, tick=False):
        found = forecast(made, now=timezone.now())
    assert "are new to Office: 10 a day" in found.sentence
    assert "are new to Front desk: 5 a day" in found.sentence


def test_a_window_that_never_closes_is_no_reason_to_forget_the_limit_of_a_day(
    owner: User, account: Account
) -> None:
    made = ReminderFactory.create(
        owner=owner,
        accounts=[account],
        recipients=RecipientFactory.create_batch(25, owner=owner),
        window_start_hour=0,
        window_end_hour=24,
    )
    with time_machine.travel(WEDNESDAY, tick=False):
        found = forecast(made, now=timezone.now())
    assert found.sentence.startswith("25 of 25 are new to Office: 10 a day, finished about Fri 13 Mar")
    assert found.fits


def test_new_people_that_fit_into_the_day_are_no_news(owner: User, account: Account) -> None:
    made = ReminderFactory.create(
        owner=owner, accounts=[account], recipients=RecipientFactory.create_batch(10, owner=owner)
    )
    with time_machine.travel(WEDNESDAY, tick=False):
        assert "new to" not in forecast(made, now=timezone.now()).sentence


def test_a_run_plans_them_beside_those_of_today_and_of_other_runs(owner: User, account: Account) -> None:
    with time_machine.travel(WEDNESDAY, tick=False):
        AttemptFactory.create_batch(4, test_send=True, account=account, at=timezone.now(), new_person=2)
        runs = [
            fire(
                ReminderFactory.create(
                    owner=owner, accounts=[account], recipients=RecipientFactory.create_batch(12, owner=owner)
                )
            )
            for _ in range(2)
        ]
        days = Counter(
            at.date().day for run in runs for at in run.targets.values_list("not_before", flat=True)
        )
    assert days == {11: 6, 12: 10, 13: 8}


def test_their_run_is_locked_before_their_account(owner: User, account: Account) -> None:
    """Every move locks in this order; else a run that is canceled meanwhile ends in a deadlock."""
    made = ReminderFactory.create(owner=owner, accounts=[account], recipients=12)
    with time_machine.travel(WEDNESDAY, tick=False):
        run = fire(made)
        with CaptureQueriesContext(connection) as asked:
            new_people.spread(run, account, now=timezone.now())
    locks = [query["sql"] for query in asked if "FOR NO KEY UPDATE" in query["sql"]]
    assert ['"delivery_run"' in lock for lock in locks] == [True, False]
    assert '"accounts_account"' in locks[1]
