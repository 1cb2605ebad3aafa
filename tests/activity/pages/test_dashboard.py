"""The dashboard: what waits, what runs, what comes, and the plot of the last day."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from accounts.models import Account, User
from activity.models import Attempt
from activity.pages import hours
from activity.pages.dashboard import first_steps
from activity.pages.use import nearest_to_their_limits
from delivery.engine.lease import Lease, acquire
from delivery.limiter import Limiter, Memory
from delivery.limits.lookup import day_of, effective_limits
from delivery.pacing import pace_of
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = pytest.mark.django_db


def shown(client: Client, user: User) -> str:
    client.force_login(user)
    return client.get(reverse("dashboard")).content.decode()


def run_named(owner: User, name: str, **values: object) -> object:
    return RunFactory.create(reminder=ReminderFactory.create(owner=owner, name=name), **values)


def test_nothing_that_waits_is_said_calmly(client: Client, owner: User) -> None:
    run_named(owner, "Done", success=True, sent=1)
    assert "Nothing to decide" in shown(client, owner)


def test_each_kind_of_decision_has_its_place(client: Client, owner: User, stranger: User) -> None:
    run_named(owner, "Held run", paused=True, sent=3, pending=7, summary="The window closed.")
    run_named(owner, "Doubtful run", partial=True, unconfirmed=2)
    run_named(owner, "Missed run", missed=True, summary="Missed by an hour.")
    AccountFactory.create(owner=owner, name="Support line", flagged=True)
    text = shown(client, owner)
    for words in (
        "Held run",
        "The window closed.",
        "2 unconfirmed messages",
        "Missed by an hour.",
        "Support line is flagged",
        "Logged out by the service.",
    ):
        assert words in text
    assert "Held run" not in shown(client, stranger)


def test_somebody_who_may_only_read_is_not_told_to_decide(client: Client, owner: User, reader: User) -> None:
    RunFactory.create(reminder__owner=owner, partial=True, unconfirmed=2)
    assert "Needs your decision" in shown(client, owner)
    page = shown(client, reader)
    assert "Waits for a decision of others" in page
    assert "mark as sent or send again" not in page


def test_a_newcomer_is_offered_to_send_to_the_sandbox(client: Client, owner: User, redis: Redis) -> None:
    account = AccountFactory.create(owner=owner, transport="sandbox")
    groups = RecipientFactory.create_batch(2, owner=owner, account=account, group=True)
    values = {"scheduled": True, "by_hand": True, "fire_at": None, "next_fire_at": None}
    reminder = ReminderFactory.create(
        owner=owner, name="Fair", accounts=[account], recipients=groups, **values
    )
    page = " ".join(shown(client, owner).split())
    assert "Send Fair to 2 practice groups" in page
    RunFactory.create(reminder=reminder, success=True, sent=1)
    assert "practice groups" not in shown(client, owner)


def test_nobody_is_offered_to_send_to_real_people(client: Client, owner: User, redis: Redis) -> None:
    real = AccountFactory.create(owner=owner, transport="waha")
    values = {"scheduled": True, "by_hand": True, "fire_at": None, "next_fire_at": None, "recipients": 2}
    ReminderFactory.create(owner=owner, accounts=[real], **values)
    assert "Try it with the sandbox" not in shown(client, owner)


def test_only_who_may_decide_gets_the_buttons(client: Client, owner: User, mate: User, reader: User) -> None:
    run = run_named(owner, "Held run", paused=True, pending=7)
    button = f'value="resume {run.pk}"'  # type: ignore[attr-defined]
    assert button in shown(client, owner)
    assert button in shown(client, mate)
    assert button not in shown(client, reader)


def test_a_miss_of_last_week_is_no_longer_shown(client: Client, owner: User) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=7)
    run_named(owner, "Old miss", missed=True, fired_at=long_ago)
    assert "Old miss" not in shown(client, owner)


def lease_of(redis: Redis, account: Account) -> Lease:
    lease = acquire(redis, account.pk, next_fence=lambda: 1)
    assert lease is not None
    return lease


class TestHours:
    NOW = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)

    def sent(self, owner: User, *times: datetime) -> None:
        target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
        for at in times:
            AttemptFactory.create(target=target, at=at)

    def counted(self, user: User) -> dict[str, int]:
        return {label: count for label, count in hours.last_day(user, self.NOW) if count}

    def test_each_hour_of_the_last_day_has_its_count(
        self, owner: User, reader: User, stranger: User, staff: User, redis: Redis
    ) -> None:
        self.sent(owner, self.NOW, self.NOW - timedelta(minutes=31), self.NOW - timedelta(minutes=40))
        self.sent(owner, self.NOW - timedelta(hours=24))
        self.sent(stranger, self.NOW - timedelta(hours=3))
        assert len(hours.last_day(owner, self.NOW)) == 24
        assert self.counted(owner) == self.counted(reader) == {"12:00": 1, "11:00": 2}
        assert self.counted(stranger) == {"09:00": 1}
        assert self.counted(staff) == {"12:00": 1, "11:00": 2, "09:00": 1}

    def test_an_hour_that_is_over_is_counted_once(self, owner: User, redis: Redis) -> None:
        self.sent(owner, self.NOW, self.NOW - timedelta(hours=2))
        self.counted(owner)
        Attempt.objects.all().delete()
        assert self.counted(owner) == {"10:00": 1}

    def test_an_hour_that_may_still_get_rows_is_counted_anew(self, owner: User, redis: Redis) -> None:
        just_after = datetime(2026, 3, 2, 12, 2, tzinfo=UTC)
        hours.last_day(owner, just_after)
        self.sent(owner, datetime(2026, 3, 2, 11, 59, tzinfo=UTC))
        assert dict(hours.last_day(owner, just_after))["11:00"] == 1

    def test_labels_are_in_the_readers_zone(self, client: Client, owner: User, redis: Redis) -> None:
        owner.zone = "Asia/Kolkata"
        owner.save()
        self.sent(owner, self.NOW)
        with time_machine.travel(self.NOW, tick=False):
            assert "17:30: 1 messages" in shown(client, owner)


def test_polling_says_what_the_socket_would(client: Client, owner: User, stranger: User) -> None:
    run = run_named(owner, "Held run", paused=True, sent=3, pending=7)
    address = f"{reverse('live')}?runs={run.pk},x"  # type: ignore[attr-defined]
    assert client.get(address).status_code == 401
    client.force_login(stranger)
    assert client.get(address).json() == {"messages": [{"type": "unread", "unread": 0}]}
    client.force_login(owner)
    _, told = client.get(address).json()["messages"]
    assert (told["type"], told["status"], told["text"]["sent"]) == ("run", "paused", "3")


class TestUse:
    NOW = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)

    def sent(self, account: Account, count: int, at: datetime | None = None) -> None:
        target = RunTargetFactory.create(run__reminder__owner=account.owner, account=account, sent=True)
        AttemptFactory.create_batch(count, target=target, at=at or self.NOW)

    def gauges(self, user: User) -> list[tuple[str, list[tuple[str, int, int | None]]]]:
        found = nearest_to_their_limits(user, self.NOW)
        return [(use.account.name, [(g.label, g.used, g.limit) for g in use.gauges]) for use in found]

    def test_those_nearest_to_their_limits_come_first(
        self, owner: User, stranger: User, redis: Redis
    ) -> None:
        calm, busy = (AccountFactory.create(owner=owner, name=name) for name in ("Calm", "Busy"))
        LimitFactory.create(account=calm, per_minute=40, per_day=100)
        LimitFactory.create(account=busy, per_minute=40, per_day=4)
        AccountFactory.create(owner=owner, name="Stopped", offline=True)
        self.sent(calm, 5)
        self.sent(busy, 3)
        self.sent(busy, 2, at=self.NOW - timedelta(days=1))
        assert self.gauges(owner)[:2] == [
            ("Busy", [("Messages today", 3, 4)]),
            ("Calm", [("Messages today", 5, 100)]),
        ]
        assert "Stopped" not in dict(self.gauges(owner))
        assert self.gauges(stranger) == []

    def test_the_limiter_is_believed_before_the_ledger(self, owner: User, redis: Redis) -> None:
        account = AccountFactory.create(owner=owner, name="Busy")
        LimitFactory.create(account=account, per_minute=40, per_hour=60, per_day=100)
        limits = effective_limits(account, "message")
        pace = pace_of(limits)
        limiter = Limiter(redis)
        now = datetime.now(UTC)
        limiter.rebuild(
            lease_of(redis, account),
            "message",
            Memory(
                day=day_of(account, now),
                day_used=9,
                reach_ms=limiter.reach_ms(pace),
                times_ms=[int(now.timestamp() * 1000)] * 4,
            ),
        )
        [use] = nearest_to_their_limits(owner, now)
        assert [(g.label, g.used, g.limit) for g in use.gauges] == [
            ("Messages today", 9, 100),
            ("Messages this hour", 4, 60),
        ]

    def test_what_is_granted_ahead_is_not_shown_above_the_limit(self, owner: User, redis: Redis) -> None:
        account = AccountFactory.create(owner=owner, name="Fast")
        limiter, now = Limiter(redis), datetime.now(UTC)
        moment = int(now.timestamp() * 1000)
        memory = Memory(
            day=day_of(account, now),
            day_used=43,
            reach_ms=limiter.reach_ms(pace_of(effective_limits(account, "message"))),
            times_ms=[moment] * 40 + [moment + 1500 * ahead for ahead in range(1, 4)],
        )
        limiter.rebuild(lease_of(redis, account), "message", memory)
        [use] = nearest_to_their_limits(owner, now)
        assert [(g.label, g.used, g.limit) for g in use.gauges][1:] == [("Messages this minute", 40, 40)]

    def test_an_account_without_a_daily_limit_shows_its_minute(self, owner: User, redis: Redis) -> None:
        AccountFactory.create(owner=owner, name="Fast")
        assert self.gauges(owner) == [
            ("Fast", [("Messages today", 0, None), ("Messages this minute", 0, 40)]),
        ]

    def test_more_accounts_take_no_more_queries(
        self, owner: User, redis: Redis, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        AccountFactory.create_batch(12, owner=owner)
        AccountFactory.create_batch(3, owner=owner, by_email=True)
        with django_assert_num_queries(3):
            assert len(nearest_to_their_limits(owner, self.NOW)) == 5


def test_a_draft_is_no_scheduled_reminder_yet(owner: User) -> None:
    ReminderFactory.create(owner=owner)
    assert [step.done for step in first_steps(owner)] == [True, False, False]
    ReminderFactory.create(owner=owner, scheduled=True)
    assert first_steps(owner)[-1].done
