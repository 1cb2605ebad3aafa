"""The progress of a warm-up from day to day."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django_celery_beat.models import PeriodicTask

from accounts.models import Account, User
from delivery.lifecycle import start_account, stop_account
from delivery.limits.lookup import effective_limits
from delivery.limits.warm_up import judge, judge_days
from delivery.tasks import judge_days as judge_days_task
from tests.factories import AccountDayFactory, AccountFactory, AttemptFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

AUCKLAND = ZoneInfo("Pacific/Auckland")
THURSDAY = datetime(2026, 3, 12, 0, 5, tzinfo=AUCKLAND)  # still Wednesday noon in UTC
WEDNESDAY_NOON = datetime(2026, 3, 11, 12, tzinfo=AUCKLAND)
DAY = timedelta(days=1)


@pytest.fixture
def account(owner: User) -> Account:
    """An account that warms up, with all days up to Tuesday counted."""
    return AccountFactory.create(
        owner=owner, warming_up=True, zone="Pacific/Auckland", warmup_counted_on=date(2026, 3, 10)
    )


def sends(account: Account, count: int, *, at: datetime = WEDNESDAY_NOON, **values: object) -> None:
    AttemptFactory.create_batch(count, test_send=True, account=account, at=at, **values)


def clean_days(account: Account) -> int:
    account.refresh_from_db()
    return account.warmup_clean_days


def test_a_day_without_trouble_raises_the_cap_by_a_step(account: Account) -> None:
    sends(account, 3)
    assert effective_limits(account, "message").per_day == 20
    assert judge_days(now=THURSDAY) == 1
    assert clean_days(account) == 1
    assert effective_limits(account, "message").per_day == 50


def test_a_day_is_counted_once(account: Account) -> None:
    sends(account, 3)
    assert [judge_days(now=THURSDAY + timedelta(minutes=late)) for late in (0, 10, 600)] == [1, 0, 0]
    assert clean_days(account) == 1


def test_two_who_judge_at_the_same_time_count_a_day_once(account: Account) -> None:
    sends(account, 3)
    stale = Account.objects.get(pk=account.pk)
    judge_days(now=THURSDAY)
    assert judge(stale, THURSDAY) is False
    assert clean_days(account) == 1


def test_the_day_ends_at_midnight_of_the_accounts_zone(account: Account) -> None:
    sends(account, 3)
    assert judge_days(now=THURSDAY - timedelta(minutes=10)) == 0
    assert judge_days(now=THURSDAY) == 1


@pytest.mark.parametrize("trouble", ["rate_limited", "account_blocked", "rejected", "unknown"])
def test_a_day_with_trouble_changes_nothing(account: Account, trouble: str) -> None:
    sends(account, 3)
    sends(account, 1, outcome=trouble)
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0
    assert account.warmup_counted_on == date(2026, 3, 11)


def test_a_day_on_which_the_service_flagged_it_does_not_count_even_if_it_is_started_again(
    account: Account,
) -> None:
    sends(account, 3)
    with time_machine.travel(WEDNESDAY_NOON, tick=False):
        stop_account(account, status=Account.Status.FLAGGED, reason="logged out")
        start_account(account)
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0
    sends(account, 3, at=WEDNESDAY_NOON + DAY)
    judge_days(now=THURSDAY + DAY)
    assert clean_days(account) == 1, "the day after does"


def test_an_account_that_does_not_warm_up_has_no_day_to_spoil(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    stop_account(account, status=Account.Status.FLAGGED, reason="logged out")
    account.refresh_from_db()
    assert account.warmup_counted_on is None


def test_a_lost_connection_is_no_trouble_with_the_service(account: Account) -> None:
    sends(account, 3)
    sends(account, 2, outcome="not_connected")
    judge_days(now=THURSDAY)
    assert clean_days(account) == 1


def test_a_day_without_messages_changes_nothing(account: Account) -> None:
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0


def test_a_flagged_account_does_not_grow(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(status=Account.Status.FLAGGED)
    sends(account, 3)
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0


def test_days_that_nobody_counted_are_made_up_for(account: Account) -> None:
    for ahead in range(5):
        sends(account, 2, at=WEDNESDAY_NOON + ahead * DAY)
    sends(account, 1, at=WEDNESDAY_NOON + 2 * DAY, outcome="rate_limited")
    judge_days(now=THURSDAY + 4 * DAY)
    assert clean_days(account) == 4


def test_a_plan_that_is_new_begins_at_its_start(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_counted_on=None)
    sends(account, 3)
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0
    assert account.warmup_counted_on == date(2026, 3, 11)


def test_an_account_that_picked_the_careful_profile_warms_up(owner: User) -> None:
    careful = AccountFactory.create(
        owner=owner, profile="whatsapp_careful", warmup_counted_on=date(2026, 3, 10)
    )
    sends(careful, 1, at=datetime(2026, 3, 11, 12, tzinfo=ZoneInfo("UTC")))
    assert effective_limits(careful, "message").per_day == 20
    judge_days(now=datetime(2026, 3, 12, 1, tzinfo=ZoneInfo("UTC")))
    assert clean_days(careful) == 1


def test_accounts_that_are_warm_are_left_alone(owner: User) -> None:
    AccountFactory.create(owner=owner)
    assert judge_days(now=THURSDAY) == 0


def test_beat_looks_for_days_that_are_over(db: None) -> None:
    job = PeriodicTask.objects.get(task=judge_days_task.name)
    assert (job.interval.every, job.interval.period) == (600, "seconds")


def test_the_job_counts_the_days(account: Account, traveling: None) -> None:
    with time_machine.travel(THURSDAY, tick=False):
        sends(account, 3)
        judge_days_task()
    assert clean_days(account) == 1


# Late trouble, blocks and rests (L5)


def test_a_day_on_which_messages_come_back_does_not_count_whenever_they_were_sent(account: Account) -> None:
    sends(account, 30)
    AccountDayFactory.create(account=account, day=WEDNESDAY_NOON.date(), returned=2)
    judge_days(now=THURSDAY)
    assert clean_days(account) == 0


@pytest.mark.parametrize(("returned", "complained", "days"), [(1, 0, 1), (0, 1, 0)])
def test_one_that_comes_back_among_many_spoils_no_day_and_one_complaint_does(
    account: Account, returned: int, complained: int, days: int
) -> None:
    sends(account, 30)
    AccountDayFactory.create(
        account=account, day=WEDNESDAY_NOON.date(), returned=returned, complained=complained
    )
    judge_days(now=THURSDAY)
    assert clean_days(account) == days


def test_a_block_takes_the_warm_up_back_to_its_start(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_clean_days=7)
    stop_account(account, status=Account.Status.FLAGGED, reason="banned")
    assert clean_days(account) == 0


def test_each_72_hours_without_a_message_halve_what_the_warm_up_has_reached(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_clean_days=5)
    sends(account, 3, at=WEDNESDAY_NOON - DAY)  # on Tuesday
    reached = []
    for later in range(8):
        judge_days(now=THURSDAY + later * DAY)
        reached.append(clean_days(account))
    # The rest that began on Tuesday at noon has lasted 72 hours on Friday, and 144 on Monday.
    assert reached == [5, 5, 2, 2, 2, 1, 1, 1]


def test_a_rest_that_nobody_looked_at_counts_all_the_same(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_clean_days=5)
    sends(account, 3, at=WEDNESDAY_NOON - DAY)
    judge_days(now=THURSDAY + 7 * DAY)
    assert clean_days(account) == 1
