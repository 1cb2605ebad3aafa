"""Accounts whose messages come back too often slow down, pause, and continue: by time, or by a person."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, TestCase
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account, HealthChange, User
from activity.models import AccountDay, Attempt, Notification
from delivery import lifecycle
from delivery.health import counts, judge
from delivery.health.rules import Tally
from delivery.models import Run
from delivery.sentences.account_state import whys
from delivery.window import window_start_at
from tests.factories import (
    AccountDayFactory,
    AccountFactory,
    AttemptFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.fixture
def account(db: None) -> Account:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM activity_ledgercount")
    return AccountFactory.create(zone="Asia/Tokyo", name="Parents")


def day(account: Account, **values: int) -> AccountDay:
    today = counts.today(account, timezone.now())
    return AccountDayFactory.create(account=account, day=today, **values)


def look(account: Account, *, now: datetime | None = None) -> Account:
    with TestCase.captureOnCommitCallbacks(execute=True):
        judge.watch(now=now or timezone.now())
    account.refresh_from_db()
    return account


def a_run(account: Account) -> Run:
    run = RunFactory.create(
        owner=account.owner,
        pending=1,
        reminder__around_the_clock=True,
        closes_at=timezone.now() + timedelta(days=1),
    )
    RunAccountFactory.create(run=run, account=account)
    RunTargetFactory.create(run=run, account=account)
    return run


# Counting


def attempt(account: Account, at: datetime, **values: Any) -> None:
    target = RunTargetFactory.create(account=account)
    AttemptFactory.create(account=account, at=at, target=target, **values)


def count_all(now: datetime) -> None:
    while counts.count_ledger(now=now):
        pass


def test_the_ledger_is_counted_by_the_accounts_days_each_message_once(account: Account) -> None:
    attempt(account, NOW - timedelta(hours=1))
    attempt(account, NOW - timedelta(hours=1), part=1)  # the same message
    attempt(account, NOW - timedelta(hours=2), outcome=Attempt.Outcome.REJECTED)
    attempt(account, NOW - timedelta(hours=2), outcome=Attempt.Outcome.UNREACHABLE)
    attempt(account, NOW + timedelta(hours=4))  # the next day in Tokyo
    for hours in (0, 0, 5, 5):
        count_all(NOW + timedelta(hours=hours))
    days = {row.day.day: (row.sent, row.failed) for row in AccountDay.objects.filter(account=account)}
    assert days == {4: (1, 1), 5: (1, 0)}


def test_a_message_that_is_written_down_late_is_counted_with_its_slice(account: Account) -> None:
    count_all(NOW)
    attempt(account, NOW - timedelta(minutes=5))  # recorded after the look, as it may take minutes
    count_all(NOW + timedelta(minutes=10))
    assert AccountDay.objects.get(account=account).sent == 1


def test_what_lies_too_far_back_is_not_counted(account: Account) -> None:
    attempt(account, NOW - timedelta(days=9))
    count_all(NOW)
    assert not AccountDay.objects.exists()


# Slower, paused, and back


def test_an_account_above_its_threshold_slows_down_and_its_owner_is_told(account: Account) -> None:
    day(account, sent=100, returned=11)
    usual = account.slowness
    look(account)
    assert (account.health, account.status) == ("slow", "active")
    assert account.slowness == 2 * usual
    assert "11 of 100 messages failed or came back in the last 7 days (11%; healthy is up to 10%)" in (
        account.health_reason
    )
    assert Notification.objects.get().title == "Parents was slowed down"
    look(account)  # nothing new
    assert HealthChange.objects.count() == 1


def test_far_above_it_the_account_pauses_and_says_why_and_until_when(account: Account) -> None:
    run = a_run(account)
    day(account, sent=100, failed=5, returned=20)
    now = timezone.now()
    look(account, now=now)
    run.refresh_from_db()
    assert (account.status, account.health) == ("paused", "paused")
    assert account.health_until == now + timedelta(hours=24)
    assert (run.status, run.pause_reason) == ("paused", "account_health")
    why = whys([account], now=now)[account.pk]
    assert why.sentence.startswith("Account health: 25 of 105 messages failed or came back")
    assert (why.clock, why.at) == ("continues in", account.health_until)
    assert "Check the numbers" in why.sentence


def test_a_pause_ends_by_itself_and_its_runs_continue(account: Account) -> None:
    run = a_run(account)
    day(account, sent=100, returned=40)
    look(account)
    look(account, now=timezone.now() + timedelta(hours=23))
    assert account.status == "paused"
    look(account, now=timezone.now() + timedelta(hours=25))
    run.refresh_from_db()
    assert (account.status, account.health, run.status) == ("active", "", "running")
    assert [change.move for change in HealthChange.objects.order_by("id")] == ["paused", "lifted"]
    look(account)  # what was before counts no more
    assert account.health == ""


def test_after_a_fresh_start_only_new_messages_count(account: Account) -> None:
    row = day(account, sent=100, returned=40)
    look(account)
    lifecycle.start_account(account, by=account.owner)
    AccountDay.objects.filter(pk=row.pk).update(sent=149, returned=60)
    assert look(account).health == ""  # 49 messages are too few
    AccountDay.objects.filter(pk=row.pk).update(sent=150, returned=60)
    assert look(account).health == "paused"


def test_a_person_lifts_it_and_that_is_recorded(client: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    day(account, sent=100, returned=12)
    look(account)
    client.force_login(owner)
    page = client.get(reverse("accounts:page", args=[account.pk]))
    assert "Send at full speed again" in page.content.decode()
    client.post(reverse("accounts:lift_health", args=[account.pk]))
    account.refresh_from_db()
    assert (account.health, account.health_base) == (
        "",
        {"sent": 100, "returned": 12, "failed": 0, "complained": 0, "replies": 0, "opt_outs": 0},
    )
    last = HealthChange.objects.order_by("-id")[0]
    assert (last.move, last.by) == ("lifted", owner)
    assert (
        "nothing to lift"
        in client.post(reverse("accounts:lift_health", args=[account.pk]), follow=True).content.decode()
    )


def test_nobody_else_lifts_it(client: Client, stranger: User, reader: User) -> None:
    account = AccountFactory.create(health="slow")
    for person in (stranger, reader):
        client.force_login(person)
        assert client.post(reverse("accounts:lift_health", args=[account.pk])).status_code in {403, 404}
    account.refresh_from_db()
    assert account.health == "slow"


def test_an_account_that_is_better_again_recovers(account: Account) -> None:
    row = day(account, sent=100, returned=11)
    look(account)
    AccountDay.objects.filter(pk=row.pk).update(sent=120)
    assert look(account).health == "slow"  # 9 %: not clearly below
    AccountDay.objects.filter(pk=row.pk).update(sent=200)
    assert look(account).health == ""


def test_a_service_that_is_back_does_not_end_the_pause(account: Account) -> None:
    day(account, sent=100, returned=40)
    look(account)
    lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="no answer")
    lifecycle.start_account(account)
    account.refresh_from_db()
    assert (account.status, account.health) == ("paused", "paused")
    assert account.status_reason.startswith("Account health")


def test_an_account_that_a_person_paused_stays_theirs(account: Account) -> None:
    lifecycle.pause_account(account, by=account.owner)
    day(account, sent=100, returned=40)
    look(account)
    assert (account.status, account.status_reason) == ("paused", f"paused by {account.owner}")


def test_a_pause_of_a_person_in_the_middle_of_a_look_stays_theirs(account: Account) -> None:
    day(account, sent=100, returned=40)
    now = timezone.now()
    found = judge.judge([Account.objects.get(pk=account.pk)], now=now)
    lifecycle.pause_account(account, by=account.owner)
    for each, health in found:
        judge.act(each, health, now=now)
    account = look(account, now=now + timedelta(days=2))
    assert (account.status, account.status_reason) == ("paused", f"paused by {account.owner}")


def test_a_tally_of_many_accounts_is_one_query(django_assert_num_queries: Any, account: Account) -> None:
    others = [AccountFactory.create() for _ in range(3)]
    for each in (account, *others):
        day(each, sent=10)
    with django_assert_num_queries(1):
        found = counts.tallies([account, *others], now=timezone.now())
    assert found == dict.fromkeys([account.pk, *(each.pk for each in others)], Tally(sent=10))


def test_messages_that_were_not_counted_yet_are_of_before_a_fresh_start(account: Account) -> None:
    now = timezone.now()
    while counts.count_ledger(now=now):
        pass
    target = RunTargetFactory.create(account=account, run__reminder__owner=account.owner)
    at = max(timezone.now() - timedelta(minutes=3), window_start_at(account.zone, 0, timezone.now()))
    for _ in range(4):
        AttemptFactory.create(target=target, at=at, rejected=True)
    Account.objects.filter(pk=account.pk).update(health=Account.Health.SLOW, health_reason="x")
    account.refresh_from_db()
    lifecycle.lift_health(account, by=account.owner)
    account.refresh_from_db()
    while counts.count_ledger(now=now + timedelta(minutes=10)):
        pass
    assert AccountDay.objects.filter(account=account, failed=4).exists(), "they were counted since"
    assert counts.tallies([account], now=timezone.now())[account.pk].failed == 0
