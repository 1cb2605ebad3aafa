"""The limits that apply to an account, and the times of its permits."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from delivery.engine import wakeups
from delivery.engine.lease import Lease
from delivery.engine.permits import Permits
from delivery.limiter import Granted
from delivery.limits.lookup import day_of, effective_limits
from delivery.planning.diary import Diary
from tests.factories import AccountFactory, LimitFactory

pytestmark = pytest.mark.django_db


def test_an_account_without_limits_of_its_own_has_those_of_its_profile(owner: User) -> None:
    limits = effective_limits(AccountFactory.create(owner=owner, profile="whatsapp_campaign"), "message")
    assert (limits.per_minute, limits.gap_min, limits.batch_size, limits.batch_pause) == (20, 3, 75, 30)


def test_what_the_profile_leaves_open_the_settings_say(owner: User, settings: Settings) -> None:
    settings.MAX_PER_MINUTE = 17
    assert effective_limits(AccountFactory.create(owner=owner, profile="linkedin"), "email").per_minute == 17


def test_the_account_overrides_its_profile_value_by_value(owner: User) -> None:
    account = AccountFactory.create(owner=owner, profile="whatsapp_campaign")
    LimitFactory.create(account=account, per_minute=5, per_day=100)
    limits = effective_limits(account, "message")
    assert (limits.per_minute, limits.per_day, limits.gap_min, limits.batch_size) == (5, 100, 3, 75)


def test_limits_of_another_action_do_not_count(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, action="inmail", per_minute=1)
    assert effective_limits(account, "message").per_minute == 40


@pytest.mark.parametrize(
    ("clean_days", "own_cap", "expected"), [(0, None, 20), (2, None, 80), (99, None, 1000), (2, 30, 30)]
)
def test_a_warm_up_caps_the_day(owner: User, clean_days: int, own_cap: int | None, expected: int) -> None:
    account = AccountFactory.create(owner=owner, warming_up=True, warmup_clean_days=clean_days)
    LimitFactory.create(account=account, per_day=own_cap)
    assert effective_limits(account, "message").per_day == expected


@pytest.mark.parametrize(
    ("zone", "now", "start", "hours"),
    [
        ("UTC", datetime(2026, 3, 11, 15, tzinfo=UTC), datetime(2026, 3, 11, tzinfo=UTC), 24),
        (
            "Asia/Kuala_Lumpur",
            datetime(2026, 3, 11, 17, tzinfo=UTC),
            datetime(2026, 3, 11, 16, tzinfo=UTC),
            24,
        ),
        ("Europe/Berlin", datetime(2026, 3, 29, 12, tzinfo=UTC), datetime(2026, 3, 28, 23, tzinfo=UTC), 23),
        ("Europe/Berlin", datetime(2026, 10, 25, 12, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC), 25),
    ],
)
def test_the_day_is_that_of_the_accounts_zone(
    owner: User, zone: str, now: datetime, start: datetime, hours: int
) -> None:
    day = day_of(AccountFactory.build(owner=owner, zone=zone), now)
    assert day.start_ms == start.timestamp() * 1000
    assert day.end_ms - day.start_ms == hours * 3_600_000


# Permits.


@pytest.fixture
def account(owner: User, redis: Redis) -> Account:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, per_minute=None, gap_min=2, gap_max=2)
    return account


@pytest.fixture
def lease(account: Account) -> Lease:
    held = wakeups.take_lease(account.pk)
    assert held is not None
    return held


def gaps(account: Account, lease: Lease, *, error_rate: float) -> set[int]:
    answer = Permits(account, lease, "message").take(cost=1, error_rate=error_rate, in_hand={}, in_flight=0)
    assert isinstance(answer, Granted)
    return {after.at_ms - before.at_ms for before, after in pairwise(answer.units)}


@pytest.mark.parametrize(
    ("error_rate", "slow_factor", "gap"),
    [(0.05, 1, 2000), (0.051, 1, 3000), (0, 2.0, 4000), (0.5, 1.5, 4500)],
)
def test_errors_and_a_slow_down_make_the_gaps_longer_by_exactly_so_much(
    account: Account, lease: Lease, error_rate: float, slow_factor: float, gap: int
) -> None:
    account.slow_factor = slow_factor
    assert gaps(account, lease, error_rate=error_rate) == {gap}


def test_no_delay_is_stretched_beyond_the_longest(account: Account, lease: Lease, settings: Settings) -> None:
    settings.MAX_DELAY_SECONDS = 2.5
    assert gaps(account, lease, error_rate=0.1) == {2500}


# Clock changes in both halves of the world, at midnight, by half an hour, and none.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/St_Johns",
    "America/Nuuk",
    "Asia/Kuala_Lumpur",
    "Asia/Beirut",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
)


@hypothesis_settings(max_examples=200, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    now=st.datetimes(datetime(2024, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_days_follow_each_other_without_a_gap_in_every_zone_and_over_every_clock_change(
    zone: str, now: datetime
) -> None:
    account = Account(zone=zone)
    today = day_of(account, now)
    tomorrow = day_of(account, datetime.fromtimestamp(today.end_ms / 1000, UTC))
    assert today.start_ms <= now.timestamp() * 1000 < today.end_ms == tomorrow.start_ms
    last = datetime.fromtimestamp((today.end_ms - 1) / 1000, ZoneInfo(zone))
    assert last.date() == now.astimezone(ZoneInfo(zone)).date() < (last + timedelta(seconds=1)).date()
    diary = Diary(zone=zone, now=now, room=lambda *_: None)
    assert [diary.day_of(last), diary.day_of(datetime.fromtimestamp(today.end_ms / 1000, UTC))] == [0, 1]
