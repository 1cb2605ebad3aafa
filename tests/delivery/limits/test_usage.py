from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from accounts.models import User
from delivery.engine.lease import acquire
from delivery.limiter import Ask, Done, Granted, Limiter, Memory
from delivery.limits import lookup
from delivery.limits.usage import Used, seconds_per_message, used_now
from delivery.pacing import pace_of
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, RunTargetFactory

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


def sends(count: int, *, apart: float, took_ms: int) -> list[tuple[datetime, int]]:
    return [(NOON + timedelta(seconds=number * apart), took_ms) for number in range(count)]


def test_a_slow_service_sets_the_pace() -> None:
    assert seconds_per_message(sends(50, apart=2, took_ms=5500), in_flight=3) == pytest.approx(2)


def test_where_the_service_was_idle_the_limits_set_it_and_nothing_is_learned() -> None:
    assert seconds_per_message(sends(50, apart=2, took_ms=120), in_flight=3) == 0


def test_a_few_messages_teach_nothing() -> None:
    assert seconds_per_message(sends(20, apart=2, took_ms=5500), in_flight=3) == 0


def test_the_silence_between_two_runs_does_not_count() -> None:
    evening = [(at + timedelta(hours=6), took) for at, took in sends(25, apart=2, took_ms=5500)]
    both = sends(25, apart=2, took_ms=5500) + evening
    assert seconds_per_message(both, in_flight=3) == pytest.approx(2)


@pytest.mark.django_db
def test_the_ledger_is_counted_for_accounts_that_the_limiter_has_forgotten(
    owner: User, redis: Redis, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    known, forgotten = AccountFactory.create_batch(2, owner=owner)
    now = datetime.now(UTC)
    for account in (known, forgotten):
        LimitFactory.create(account=account, per_minute=40, per_hour=60, per_day=100)
        target = RunTargetFactory.create(run__reminder__owner=owner, account=account, sent=True)
        AttemptFactory.create_batch(2, target=target, at=now - timedelta(seconds=1))
    which = [(known, "message"), (forgotten, "message")]
    limits = lookup.limits_for(which)
    limiter, pace = Limiter(redis), pace_of(limits[known.pk, "message"])
    lease = acquire(redis, known.pk, next_fence=lambda: 1)
    assert lease is not None
    memory = Memory(
        day=lookup.day_of(known, now),
        day_used=9,
        reach_ms=limiter.reach_ms(pace),
        times_ms=[int(now.timestamp() * 1000)] * 4,
    )
    limiter.rebuild(lease, "message", memory)
    with django_assert_num_queries(1):
        used = used_now(which, limits, now=now)
    assert used[known.pk, "message"] == Used(day=9, hour=4, minute=4)
    counted = used[forgotten.pk, "message"]
    assert (counted.hour, counted.minute) == (2, 2)
    some = used_now(which[1:], limits, now=now, most=1)[forgotten.pk, "message"]
    assert [str(each) for each in (some.day, some.hour, some.minute)] == ["1+", "1+", "1+"]


@pytest.mark.django_db
def test_permits_for_later_are_not_counted_as_used(owner: User, redis: Redis) -> None:
    now = datetime.now(UTC)
    account = AccountFactory.create(owner=owner, zone=f"Etc/GMT{now.hour - 12:+d}")  # where it is noon
    LimitFactory.create(account=account, per_minute=40, per_hour=60, per_day=100)
    which = [(account, "message")]
    limits = lookup.limits_for(which)
    pace, day = pace_of(limits[account.pk, "message"]), lookup.day_of(account, now)
    limiter = Limiter(redis, horizon_ms=600_000)
    lease = acquire(redis, account.pk, next_fence=lambda: 1)
    assert lease is not None
    seen = [int(now.timestamp() * 1000)] * 3
    done = limiter.rebuild(
        lease, "message", Memory(day=day, day_used=3, reach_ms=limiter.reach_ms(pace), times_ms=seen)
    )
    assert isinstance(done, Done)
    granted = limiter.take(
        Ask(
            lease=lease,
            action="message",
            pace=pace,
            day=day,
            want=4,
            cost=1,
            gaps_ms=[60_000] * 4,
            mark=done.mark,
        )
    )
    assert isinstance(granted, Granted)
    assert len(granted.units) == 4, "one for now, three for later"
    assert used_now(which, limits, now=now)[account.pk, "message"] == Used(day=4, hour=4, minute=4)
