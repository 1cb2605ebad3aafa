"""Leases, knocks and wake-ups."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from redis import Redis

from accounts.models import Account, User
from delivery.engine import wakeups
from delivery.engine.lease import Lease, lease_key, renew
from delivery.engine.tick import wake_due_accounts
from delivery.engine.wakeups import Rest
from delivery.states import WaitReason
from reminders.fire import fire
from tests.delivery.stage import abandon
from tests.factories import AccountFactory, LimitFactory, ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db

NOTHING = WaitReason.NOTHING_TO_SEND


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def take(account: Account) -> Lease:
    held = wakeups.take_lease(account.pk)
    assert held is not None
    return held


def waiting(redis: Redis, account: Account) -> int:
    """Pumps that wait in the account's queue."""
    return int(redis.llen(f"paceline:queue:{wakeups.queue_name(account.pk)}"))


def busy(account: Account) -> None:
    fire(ReminderFactory.create(owner=account.owner, accounts=[account], recipients=2, around_the_clock=True))


def test_a_lease_has_a_fencing_number_that_grows_and_a_watchdog(account: Account, redis: Redis) -> None:
    first = take(account)
    wakeups.end_shift(first, Rest(until=None, reason=NOTHING))
    second = take(account)
    assert second.fence == first.fence + 1
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at > timezone.now(), "a pump that dies is noticed"


def test_who_finds_the_lease_taken_knocks_and_gets_a_pump_afterwards(account: Account, redis: Redis) -> None:
    held = take(account)
    assert wakeups.take_lease(account.pk) is None
    wakeups.end_shift(held, Rest(until=None, reason=NOTHING))
    assert waiting(redis, account) == 1
    assert not redis.exists(lease_key(account.pk))


def test_an_account_without_work_is_not_woken(account: Account, redis: Redis) -> None:
    wakeups.end_shift(take(account), Rest(until=None, reason=NOTHING))
    account.refresh_from_db()
    assert (account.wake_at, account.waiting_for) == (None, NOTHING)
    assert waiting(redis, account) == 0


def test_work_that_is_left_is_come_back_to(account: Account, redis: Redis) -> None:
    busy(account)
    until = datetime.now(UTC) + timedelta(hours=2)
    wakeups.end_shift(take(account), Rest(until=until, reason=WaitReason.PER_DAY))
    account.refresh_from_db()
    assert (account.wake_at, account.waiting_until, account.waiting_for) == (until, until, "per_day")
    assert waiting(redis, account) == 0, "a long wait is the tick's"


def test_work_that_came_after_the_last_look_is_come_back_to(account: Account, redis: Redis) -> None:
    held = take(account)
    busy(account)
    wakeups.end_shift(held, Rest(until=None, reason=NOTHING))
    account.refresh_from_db()
    assert account.wake_at is not None


def test_a_run_that_is_fired_during_a_shift_is_not_put_off_to_what_the_shift_waits_for(
    account: Account, redis: Redis
) -> None:
    held = take(account)
    busy(account)
    wakeups.end_shift(held, Rest.after(86_400, WaitReason.NOT_BEFORE))
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at <= timezone.now()


def test_a_wake_up_that_the_tick_took_is_not_put_off_either(account: Account, redis: Redis) -> None:
    held = take(account)
    busy(account)
    wake_due_accounts()
    assert waiting(redis, account) == 0
    wakeups.end_shift(held, Rest.after(86_400, WaitReason.NOT_BEFORE))
    assert waiting(redis, account) == 1


def test_a_knock_is_answered_even_if_the_broker_loses_the_pump(account: Account, redis: Redis) -> None:
    busy(account)
    held = take(account)
    assert wakeups.take_lease(account.pk) is None
    wakeups.end_shift(held, Rest.after(86_400, WaitReason.NOT_BEFORE))
    redis.flushdb()
    wake_due_accounts()
    assert waiting(redis, account) == 1


def test_a_knock_is_heard_at_the_end_of_the_slowest_shift(account: Account, redis: Redis) -> None:
    take(account)
    assert wakeups.take_lease(account.pk) is None
    slowest = settings.PUMP_SECONDS + 6 * settings.SEND_TIMEOUT_SECONDS
    assert redis.pttl(f"paceline:{{{account.pk}}}:knock") > slowest * 1000


def test_a_short_wait_sends_the_next_pump_right_away(account: Account, redis: Redis) -> None:
    busy(account)
    wakeups.end_shift(take(account), Rest.soon())
    assert waiting(redis, account) == 1


def test_an_account_with_a_message_in_doubt_is_looked_at_again(account: Account, redis: Redis) -> None:
    run = fire(
        ReminderFactory.create(owner=account.owner, accounts=[account], recipients=1, around_the_clock=True)
    )
    abandon(run, account, begun=True)
    wakeups.end_shift(take(account), Rest(until=None, reason=NOTHING))
    account.refresh_from_db()
    assert account.wake_at is not None


def test_a_stopped_account_is_not_woken(account: Account, redis: Redis) -> None:
    busy(account)
    Account.objects.update(status="flagged")
    wakeups.end_shift(take(account), Rest.soon())
    account.refresh_from_db()
    assert account.wake_at is None


def test_a_pump_that_lost_its_lease_says_nothing_about_the_account(account: Account, redis: Redis) -> None:
    old = take(account)
    redis.delete(lease_key(account.pk))
    new = take(account)
    before = Account.objects.get()
    wakeups.end_shift(old, Rest(until=None, reason=NOTHING))
    after = Account.objects.get()
    assert (after.wake_at, after.waiting_for) == (before.wake_at, before.waiting_for)
    assert renew(redis, [old, new]) == [old]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_fired_while_a_pump_ends_is_not_lost(account: Account, redis: Redis) -> None:
    """The end of the shift waits for the firing's lock, and must then see what it was waiting for."""
    held = take(account)

    def end() -> None:
        wakeups.end_shift(held, Rest(until=None, reason=NOTHING))
        connection.close()

    ending = threading.Thread(target=end)
    with transaction.atomic():
        busy(account)
        ending.start()
        while not _somebody_waits_for_a_lock():
            time.sleep(0.01)
    ending.join()
    account.refresh_from_db()
    assert account.wake_at is not None


def test_waking_marks_the_account_and_sends_its_pump(account: Account, redis: Redis) -> None:
    wakeups.wake_on_commit([account.pk])
    account.refresh_from_db()
    assert account.wake_at is not None
    wakeups.wake([account.pk])
    assert waiting(redis, account) == 1


def test_a_rest_is_the_same_moment_on_both_clocks() -> None:
    rest = Rest.after(30, WaitReason.GAP)
    assert not rest.due()
    assert 29 < rest.seconds() <= 30
    assert Rest.soon().due()
    assert not Rest(until=None).due()


def test_accounts_of_a_settled_run_have_no_wake_up(account: Account, redis: Redis) -> None:
    RunFactory.create(success=True, reminder__owner=account.owner)
    wakeups.end_shift(take(account), Rest.soon())
    account.refresh_from_db()
    assert account.wake_at is None


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        row = cursor.fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize("wakes", [True, False], ids=["waits", "has nothing to send"])
def test_an_account_that_waits_looks_again_when_its_limits_change(account: Account, wakes: bool) -> None:
    """The change may come from the admin or a page, and the account may wait until tomorrow."""
    limit = LimitFactory.create(account=account, per_day=5)
    tomorrow = timezone.now() + timedelta(days=1)
    for change in (limit.save, limit.delete):
        Account.objects.update(wake_at=tomorrow if wakes else None)
        change()
        account.refresh_from_db()
        assert (account.wake_at is not None and account.wake_at < tomorrow) == wakes
