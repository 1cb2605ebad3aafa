"""The metrics of sending: what waits and why, the pace that is allowed, workers and shares, and what was counted."""

import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from activity import counters, heartbeats
from delivery import pacing
from delivery.limits.lookup import effective_limits
from delivery.models import Run
from reminders.models import Reminder
from tests.activity.metrics.test_page import read
from tests.factories import AccountFactory, LimitFactory, ReminderFactory, RunAccountFactory, RunFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def prometheus(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


def test_runs_and_their_targets_are_told_until_they_are_finished(prometheus: Client) -> None:
    RunAccountFactory.create(run=RunFactory.create(pending=5, sending=1, unconfirmed=2, sent=1))
    paused = RunFactory.create(paused=True, pending=3)
    RunAccountFactory.create_batch(2, run=paused)
    RunAccountFactory.create(run=RunFactory.create(pending=9), open=False)
    values = read(prometheus)
    assert values["paceline_runs", "", "running"] == 1  # labels are in the order of their names
    assert values["paceline_runs", paused.pause_reason, "paused"] == 1
    waits = [values[f"paceline_targets_{name}",] for name in ("pending", "sending", "unconfirmed")]
    assert waits == [8, 1, 2]


def test_accounts_are_told_by_status_and_by_what_they_wait_for(prometheus: Client) -> None:
    waiting = [AccountFactory.create() for _ in range(3)]
    Account.objects.filter(pk__in=[account.pk for account in waiting[:2]]).update(
        wake_at=timezone.now() + timedelta(minutes=1), waiting_for="per_hour"
    )
    Account.objects.filter(pk=waiting[2].pk).update(status="offline", waiting_for="account_stopped")
    values = read(prometheus)
    assert (values["paceline_accounts", "active"], values["paceline_accounts", "offline"]) == (2, 1)
    assert values["paceline_accounts_waiting", "per_hour"] == 2
    assert ("paceline_accounts_waiting", "account_stopped") not in values, "it has nothing to send"


def test_reminders_that_are_late_are_counted_with_the_oldest(prometheus: Client) -> None:
    now = timezone.now()
    for seconds in (-60, 30, 300, 200):
        reminder = ReminderFactory.create(scheduled=True)
        Reminder.objects.filter(pk=reminder.pk).update(next_fire_at=now - timedelta(seconds=seconds))
    values = read(prometheus)
    assert values["paceline_late_reminders",] == 2
    assert 290 <= values["paceline_oldest_reminder_seconds",] < 400  # now() is when the transaction began


class TestTheAllowedPace:
    @pytest.fixture
    def account(self) -> Account:
        account = RunAccountFactory.create(run=RunFactory.create()).account
        Account.objects.filter(pk=account.pk).update(wake_at=timezone.now())
        LimitFactory.create(account=account, per_minute=30)
        return account

    def test_it_follows_the_limits_and_the_slow_down(self, prometheus: Client, account: Account) -> None:
        key = ("paceline_allowed_per_minute", str(account.pk), "message")
        gap = pacing.usual_gap(effective_limits(account, "message"))
        assert read(prometheus)[key] == pytest.approx(60 / gap)
        Account.objects.filter(pk=account.pk).update(slow_factor=2)
        assert read(prometheus)[key] == pytest.approx(30 / gap)

    def test_an_account_that_may_not_send_has_none(self, prometheus: Client, account: Account) -> None:
        Account.objects.filter(pk=account.pk).update(status="paused")
        assert not [key for key in read(prometheus) if key[0] == "paceline_allowed_per_minute"]

    def test_a_run_that_is_paused_allows_nothing(self, prometheus: Client, account: Account) -> None:
        Run.objects.update(status="paused", pause_reason="operator")
        assert not [key for key in read(prometheus) if key[0] == "paceline_allowed_per_minute"]

    def test_without_accounts_it_is_a_sum(
        self, prometheus: Client, account: Account, settings: Settings
    ) -> None:
        other = RunAccountFactory.create(run=Run.objects.get()).account
        Account.objects.filter(pk=other.pk).update(wake_at=timezone.now())
        LimitFactory.create(account=other, per_minute=10)
        each = [value for key, value in read(prometheus).items() if key[0] == "paceline_allowed_per_minute"]
        assert len(each) == 2
        settings.METRICS_PER_ACCOUNT = False
        assert read(prometheus)["paceline_allowed_per_minute", "message"] == pytest.approx(sum(each))


class TestCounted:
    def test_messages_are_added_up_in_the_process_and_written_at_once(
        self, prometheus: Client, redis: Redis
    ) -> None:
        for outcome in ("sent", "sent", "rejected"):
            counters.tally(counters.MESSAGES, account="7", action="message", outcome=outcome)
        assert not redis.exists(counters.KEY)
        counters.flush()
        counters.flush()
        values = read(prometheus)
        assert values["paceline_messages_total", "7", "message", "sent"] == 2
        assert values["paceline_messages_total", "7", "message", "rejected"] == 1

    def test_without_accounts_they_are_sums(self, prometheus: Client, settings: Settings) -> None:
        settings.METRICS_PER_ACCOUNT = False
        for account in ("7", "8"):
            counters.count(counters.MESSAGES, account=account, action="message", outcome="sent")
        assert read(prometheus)["paceline_messages_total", "message", "sent"] == 2

    def test_what_cannot_be_written_is_kept(
        self, prometheus: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Redis(unix_socket_path="/nonexistent/redis.sock") as away, monkeypatch.context() as patched:
            patched.setattr(counters, "client", lambda: away)
            counters.tally(counters.LIMITER_REBUILDS)
            counters.flush()
            counters.tally(counters.LIMITER_REBUILDS)
        counters.flush()
        assert read(prometheus)["paceline_limiter_rebuilds_total",] == 2

    def test_rare_events_are_there_before_the_first(self, prometheus: Client) -> None:
        values = read(prometheus)
        assert values["paceline_leases_lost_total",] == values["paceline_limiter_rebuilds_total",] == 0


class TestWorkers:
    @pytest.mark.django_db(transaction=True)  # the checks have a connection of their own
    def test_each_worker_and_share_is_told(self, prometheus: Client) -> None:
        accounts = AccountFactory.create_batch(3)
        Account.objects.update(wake_at=timezone.now())
        heartbeats.tell("one@here", share="1/2", threads=64, serving=5, oldest_lease=12.34)
        values = read(prometheus)
        assert values["paceline_worker_threads", "one@here"] == 64
        assert values["paceline_worker_accounts", "one@here"] == 5
        assert values["paceline_worker_oldest_lease_seconds", "one@here"] == 12.3
        assert (values["paceline_share_workers", "1/2"], values["paceline_share_workers", "2/2"]) == (1, 0)
        even = sum(account.pk % 2 == 0 for account in accounts)
        work = [values["paceline_share_accounts_with_work", share] for share in ("1/2", "2/2")]
        assert work == [even, 3 - even]

    def test_a_worker_of_the_release_before_is_listed_too(self, prometheus: Client, redis: Redis) -> None:
        report = {"at": int(redis.time()[0]), "share": "1/1", "media": ""}
        redis.hset(heartbeats.REPORTS_KEY, "old@here", json.dumps(report))
        assert read(prometheus)["paceline_worker_threads", "old@here"] == 0


def test_the_checks_come_through_without_the_database(
    prometheus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nonexistent")
    values = read(prometheus)
    assert values["paceline_check_ok", "database"] == 0
    assert not [key for key in values if key[0] in {"paceline_runs", "paceline_follow_ups"}]


def test_the_checks_come_through_without_redis(prometheus: Client) -> None:
    """In a process of its own, whose Redis does not answer."""
    program = (
        "import django; django.setup();"
        "from activity.metrics.page import Everything;"
        "print({family.name for family in Everything().collect()})"
    )
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEBUG": "true"}
    asked = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **settings,
            "REDIS_URL": "redis://127.0.0.1:9/0",
            "DATABASE_URL": "postgresql://x@127.0.0.1:9/x",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "paceline_check_ok" in asked.stdout
    assert "paceline_messages" not in asked.stdout
