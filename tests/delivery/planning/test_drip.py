"""Drips: a time for every target when the run is made, and again when the plan was not kept."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Account, User
from delivery.models import Run
from delivery.planning import drip, forecasts
from delivery.sessions import first_contacts
from reminders.fire import fire
from tests.delivery.stage import add_up, becomes
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=BERLIN)


@pytest.fixture
def account(owner: User) -> Account:
    account = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    LimitFactory.create(account=account, per_day=20)
    return account


def dripping(account: Account, *, at: datetime = WEDNESDAY, **values: Any) -> Run:
    given = {"accounts": [account], "recipients": 50, "zone": "Europe/Berlin", **values}
    made = ReminderFactory.create(owner=account.owner, dripping=True, business_hours=True, **given)
    with time_machine.travel(at, tick=False):
        return fire(made)


def plan_of(*runs: Run, account: Account | None = None) -> list[datetime]:
    times = [
        target.not_before.astimezone(BERLIN)
        for run in runs
        for target in run.targets.all()
        if account is None or target.account_id == account.pk
    ]
    return sorted(times)


def per_day(times: Sequence[datetime]) -> list[int]:
    return list(Counter(at.date() for at in times).values())


def test_every_target_has_its_time_in_business_hours_under_the_cap_and_apart(account: Account) -> None:
    run = dripping(account)
    times = plan_of(run)
    assert (run.drip, len(times), times[0]) == ((300, 1200), 50, WEDNESDAY)
    assert all(9 <= at.hour < 18 and at.weekday() < 5 for at in times)
    assert per_day(times) == [20, 20, 10]
    assert all(
        timedelta(minutes=5) <= after - before <= timedelta(minutes=20)
        for before, after in pairwise(times)
        if before.date() == after.date()
    )
    add_up(run)


def test_what_is_sent_and_planned_already_counts(account: Account) -> None:
    AttemptFactory.create_batch(4, test_send=True, account=account, at=WEDNESDAY - timedelta(hours=1))
    first, second = dripping(account, recipients=10), dripping(account, recipients=30)
    assert per_day(plan_of(first)) == [10]
    assert per_day(plan_of(second)) == [6, 20, 4]


def test_what_is_sent_at_once_takes_its_days_first(account: Account) -> None:
    dripping(account, recipients=30, drip=False)
    assert per_day(plan_of(dripping(account, recipients=20))) == [10, 10]


def test_every_part_counts(account: Account) -> None:
    assert per_day(plan_of(dripping(account, recipients=12, parts=3))) == [6, 6]


def test_the_accounts_limits_can_ask_for_more_time(account: Account) -> None:
    account.limits.update(gap_min=1200, gap_max=1800, per_day=None)
    times = plan_of(dripping(account, recipients=10))
    assert min(after - before for before, after in pairwise(times)) >= timedelta(minutes=20)


def test_a_warm_up_does_not_grow_over_a_weekend(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_start=2, warmup_step=3, warmup_ceiling=100)
    times = plan_of(dripping(account, recipients=12, at=WEDNESDAY + timedelta(days=2)))
    assert [(at.day, count) for at, count in Counter(at.date() for at in times).items()] == [
        (13, 2),  # Friday
        (16, 5),  # Monday, after one day with messages
        (17, 5),
    ]


def test_each_account_has_a_plan_of_its_own(owner: User, account: Account) -> None:
    other = AccountFactory.create(owner=owner, zone="Pacific/Auckland")
    LimitFactory.create(account=other, per_day=5)
    tied = [RecipientFactory.create_batch(10, owner=owner, account=each) for each in (account, other)]
    run = dripping(account, accounts=[account, other], recipients=[*tied[0], *tied[1]])
    assert per_day(plan_of(run, account=account)) == [10]
    own_days = Counter(
        at.astimezone(ZoneInfo("Pacific/Auckland")).date() for at in plan_of(run, account=other)
    )
    assert max(own_days.values()) == 5
    assert sum(own_days.values()) == 10


def test_a_run_that_is_no_drip_is_due_at_once_and_costs_no_more_for_it(account: Account) -> None:
    plain = ReminderFactory.create(
        owner=account.owner, accounts=[account], recipients=3, around_the_clock=True
    )
    with CaptureQueriesContext(connection) as queries:
        run = fire(plain)
    assert run.drip is None
    assert set(run.targets.values_list("not_before", flat=True)) == {run.fired_at}
    assert not any("AS share" in query["sql"] for query in queries)


def test_planning_takes_the_same_statements_however_many_targets(account: Account) -> None:
    first, few, many = (
        ReminderFactory.create(
            owner=account.owner, accounts=[account], recipients=count, dripping=True, around_the_clock=True
        )
        for count in (2, 2, 40)
    )
    fire(first)
    with CaptureQueriesContext(connection) as for_few:
        fire(few)
    with CaptureQueriesContext(connection) as for_many:
        fire(many)
    assert len(for_few) == len(for_many)


def test_a_message_that_fits_no_day_is_left_to_the_engine_to_refuse(account: Account) -> None:
    account.limits.update(per_day=2)
    run = dripping(account, recipients=2, parts=3)
    assert set(run.targets.values_list("not_before", flat=True)) == {run.fired_at}


def test_a_drip_that_keeps_its_plan_is_left_alone(account: Account) -> None:
    run = dripping(account, recipients=5)
    assert drip.catch_up(run, account, now=WEDNESDAY + timedelta(seconds=60)) == 0


def test_what_an_outage_made_overdue_is_spread_anew(account: Account) -> None:
    run = dripping(account, recipients=30)
    later = WEDNESDAY + timedelta(hours=3)
    assert drip.catch_up(run, account, now=later) == 30
    times = plan_of(run)
    assert times[0] == later
    assert max(per_day(times)) <= 20
    assert all(after - before >= timedelta(minutes=5) for before, after in pairwise(times))


def test_first_contacts_are_not_planned_into_a_lock(account: Account) -> None:
    with time_machine.travel(WEDNESDAY, tick=False):
        run = dripping(account, recipients=5)
        later = WEDNESDAY + timedelta(hours=3)
        first_contacts.lock(account, at=WEDNESDAY, until=WEDNESDAY + timedelta(hours=24))
        run.targets.filter(pk=run.targets.order_by("pk")[0].pk).update(not_before=WEDNESDAY)
        drip.catch_up(run, account, now=later)
    assert min(plan_of(run)) >= WEDNESDAY + timedelta(hours=24)


def test_what_has_left_is_not_planned_again(account: Account) -> None:
    run = dripping(account, recipients=5)
    becomes(run, "sent", "sent")  # type: ignore[arg-type]  # by their names
    assert drip.catch_up(run, account, now=WEDNESDAY + timedelta(hours=5)) == 3


def test_a_run_that_is_no_drip_has_no_plan_to_keep(account: Account) -> None:
    run = dripping(account, recipients=2, drip=False)
    assert drip.catch_up(run, account, now=WEDNESDAY + timedelta(hours=5)) == 0


def test_nothing_left_needs_no_plan(account: Account) -> None:
    run = dripping(account, recipients=1)
    becomes(run, "sent")  # type: ignore[arg-type]
    assert drip.catch_up(run, account, now=WEDNESDAY + timedelta(hours=5)) == 0


def test_the_forecast_of_a_drip_is_its_plan(account: Account) -> None:
    run = dripping(account, recipients=50)
    found = forecasts.forecast(run, now=WEDNESDAY)
    assert found.fits
    last = plan_of(run)[-1]
    assert found.finishes_at is not None
    assert last <= found.finishes_at <= last + timedelta(seconds=10)  # the last message takes a moment
    assert found.timeline.curve[-1].done == 50
    assert found.sentence.startswith("Planned over 3 days, finished about Fri 13 Mar")
