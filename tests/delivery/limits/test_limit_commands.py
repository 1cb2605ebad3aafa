"""check_limits and fix_limits, on plans that somebody spoiled by hand."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from accounts.models import Account, User
from delivery.models import Run, RunTarget
from reminders.fire import fire
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, ReminderFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def wednesday() -> Any:
    with time_machine.travel(WEDNESDAY, tick=False) as traveller:
        yield traveller


@pytest.fixture
def account(owner: User) -> Account:
    account = AccountFactory.create(owner=owner, name="Anna")
    LimitFactory.create(account=account, per_day=10)
    return account


@pytest.fixture
def run(account: Account) -> Run:
    """A drip of 25, as it is planned: 10, 10 and 5."""
    reminder = ReminderFactory.create(
        owner=account.owner, accounts=[account], recipients=25, dripping=True, business_hours=True
    )
    return fire(reminder)


def said(command: str, **options: Any) -> tuple[int, str]:
    """The exit code, and all that was said."""
    out = StringIO()
    try:
        call_command(command, stdout=out, **options)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def spoil(run: Run) -> None:
    """Plan everything for Friday, directly in the database."""
    RunTarget.objects.filter(run=run).update(not_before=WEDNESDAY + timedelta(days=2, hours=1))


def per_day(run: Run) -> list[int]:
    times = run.targets.order_by("not_before").values_list("not_before", flat=True)
    return list(Counter(at.date() for at in times).values())


def plan_of(run: Run) -> list[Any]:
    return list(run.targets.order_by("pk").values_list("pk", "not_before"))


def test_a_plan_that_fits_is_no_news(run: Run) -> None:
    assert said("check_limits") == (0, "No day is over its cap.\n")
    assert said("fix_limits") == (0, "No day is over its cap: nothing to move.\n")


def test_a_day_that_is_planned_over_its_cap_is_found(run: Run, account: Account) -> None:
    spoil(run)
    code, text = said("check_limits")
    assert code == 1
    head, row, verdict = text.splitlines()
    assert head == f"{'account':>7}  name  action   span  day         sent  planned  cap  over"
    assert row == f"{account.pk:>7}  Anna  message  day   2026-03-13     0       25   10    15"
    assert verdict == (
        "Over their cap: 0 days by what was sent, 1 day by what is planned. "
        "`manage.py fix_limits` moves what is planned."
    )


def test_a_day_that_was_over_its_cap_is_found_too(account: Account) -> None:
    AttemptFactory.create_batch(11, test_send=True, account=account, at=WEDNESDAY - timedelta(days=1))
    AttemptFactory.create_batch(11, test_send=True, account=account, at=WEDNESDAY - timedelta(days=9))
    code, text = said("check_limits")
    assert code == 1
    assert "2026-03-10    11        0   10     1" in text
    assert "2026-03-02" not in text
    assert "2026-03-02" in said("check_limits", days=10)[1]


def test_a_week_that_was_over_its_cap_is_found(account: Account) -> None:
    account.limits.update(per_7_days=12)
    for days in (1, 4):
        AttemptFactory.create_batch(7, test_send=True, account=account, at=WEDNESDAY - timedelta(days=days))
    AttemptFactory.create_batch(
        9, test_send=True, account=account, at=WEDNESDAY - timedelta(days=3), outcome="not_connected"
    )
    code, text = said("check_limits")
    assert code == 1
    assert "7 days  2026-03-10    14        0   12     2" in text


def test_a_plan_that_fills_a_week_is_moved_to_the_next(run: Run, account: Account) -> None:
    account.limits.update(per_7_days=15)
    assert said("check_limits")[0] == 1
    assert said("fix_limits")[0] == 0
    assert said("check_limits")[0] == 0
    days = Counter(at.date() for at in run.targets.values_list("not_before", flat=True))
    assert all(
        sum(count for day, count in days.items() if timedelta() <= day - first < timedelta(days=7)) <= 15
        for first in days
    )


def test_it_is_repaired_and_a_second_time_changes_nothing(run: Run) -> None:
    spoil(run)
    code, text = said("fix_limits")
    assert code == 0
    assert f"{run.pk}" in text
    assert per_day(run) == [10, 10, 5]
    assert said("check_limits")[0] == 0
    plan = plan_of(run)
    assert said("fix_limits") == (0, "No day is over its cap: nothing to move.\n")
    assert plan_of(run) == plan


def test_a_dry_run_says_the_same_and_changes_nothing(run: Run) -> None:
    spoil(run)
    plan = plan_of(run)
    dry = said("fix_limits", dry_run=True)
    assert plan_of(run) == plan
    run.refresh_from_db()
    assert run.summary == ""
    assert dry == said("fix_limits")


def test_what_fits_no_day_is_named_and_is_exit_code_1(run: Run, account: Account) -> None:
    Run.objects.filter(pk=run.pk).update(parts=[{"kind": "text", "text": "Hi"}] * 11)
    code, text = said("fix_limits")
    assert code == 1
    assert "Still over their cap: Anna." in text


def test_one_account_can_be_looked_at_alone(run: Run, owner: User) -> None:
    spoil(run)
    other = AccountFactory.create(owner=owner)
    assert said("check_limits", account=other.pk)[0] == 0


def test_an_unknown_account_is_exit_code_2(db: None) -> None:
    assert said("check_limits", account=404) == (2, "There is no account 404.")
