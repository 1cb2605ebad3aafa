"""The work that beat does every few seconds."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis import Redis

from accounts.models import Account, User
from delivery import tasks
from delivery.engine import wakeups
from delivery.engine.tick import tick, wake_due_accounts
from delivery.models import Run
from delivery.states import RunStatus
from tests.factories import AccountFactory, RunFactory

pytestmark = pytest.mark.django_db


def waiting(redis: Redis, account: Account) -> int:
    return int(redis.llen(f"paceline:queue:{wakeups.queue_name(account.pk)}"))


def due(owner: User, **values: object) -> Account:
    return AccountFactory.create(owner=owner, wake_at=timezone.now() - timedelta(seconds=1), **values)


def test_an_account_whose_wake_up_has_come_gets_a_pump(owner: User, redis: Redis) -> None:
    account = due(owner)
    wake_due_accounts()
    assert waiting(redis, account) == 1


def test_an_account_is_not_woken_again_by_the_next_tick(owner: User, redis: Redis) -> None:
    account = due(owner)
    tick()
    tick()
    assert waiting(redis, account) == 1
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at > timezone.now(), "if that pump is lost, it is woken again later"


def test_an_account_with_a_pump_at_work_is_left_alone(owner: User, redis: Redis) -> None:
    account = AccountFactory.create(owner=owner)
    assert wakeups.take_lease(account.pk)
    Account.objects.update(wake_at=timezone.now() - timedelta(seconds=1))
    wake_due_accounts()
    assert waiting(redis, account) == 0


def test_an_account_whose_pump_died_is_woken(owner: User, redis: Redis) -> None:
    account = AccountFactory.create(owner=owner)
    assert wakeups.take_lease(account.pk)
    redis.flushdb()
    Account.objects.update(wake_at=timezone.now() - timedelta(seconds=1))
    wake_due_accounts()
    assert waiting(redis, account) == 1


@pytest.mark.parametrize("wake_in", [None, timedelta(minutes=1)], ids=["never", "later"])
def test_others_sleep_on(owner: User, redis: Redis, wake_in: timedelta | None) -> None:
    account = AccountFactory.create(owner=owner, wake_at=wake_in and timezone.now() + wake_in)
    wake_due_accounts()
    assert waiting(redis, account) == 0


def test_a_tick_with_nothing_to_do_costs_five_queries_however_much_there_is(
    owner: User, redis: Redis
) -> None:
    RunFactory.create_batch(5, reminder__owner=owner, closes_at=timezone.now() + timedelta(hours=1))
    AccountFactory.create_batch(5, owner=owner, wake_at=timezone.now() + timedelta(hours=1))
    with CaptureQueriesContext(connection) as queries:
        tick()
    assert len(queries) == 5


def test_the_task_opens_windows_and_shows_that_beat_is_alive(owner: User, redis: Redis) -> None:
    run = RunFactory.create(
        reminder__owner=owner,
        reminder__around_the_clock=True,
        queued=True,
        opens_at=timezone.now() - timedelta(seconds=1),
    )
    tasks.tick()
    assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING
    assert redis.exists("paceline:seen:beat")
