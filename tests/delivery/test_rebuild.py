"""What the ledger remembers of an account (SPEC P8)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil

import pytest

from accounts.models import Account, User
from delivery.limiter import Day, Memory
from delivery.pacing import Pace
from delivery.rebuild import memory
from tests.factories import AccountFactory, AttemptFactory, RunTargetFactory

pytestmark = pytest.mark.django_db

HOUR_MS = 3_600_000
PACE = Pace(per_minute=40, per_hour=100, per_day=200, batch_size=5, batch_pause_ms=30_000)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def ms(at: datetime) -> int:
    return ceil(at.timestamp() * 1000)


def attempt(account: Account, ago: timedelta, **values: object) -> datetime:
    at = datetime.now(UTC) - ago
    AttemptFactory.create(test_send=True, account=account, at=at, **{"took_ms": 0, **values})
    return at


def remembered(account: Account, *, in_hand: Mapping[str, int] | None = None, in_the_air: int = 0) -> Memory:
    now = datetime.now(UTC)
    day = Day(start_ms=ms(now - timedelta(hours=12)), end_ms=ms(now + timedelta(hours=12)))
    return memory(
        account,
        "message",
        pace=PACE,
        day=day,
        reach_ms=HOUR_MS,
        gap_ms=1500,
        in_hand=in_hand or {},
        in_the_air=in_the_air,
    )


def test_an_account_that_never_sent_has_nothing_to_remember(account: Account) -> None:
    found = remembered(account)
    assert (found.day_used, list(found.times_ms), found.batch, found.last_ms) == (0, [], 0, 0)


def test_the_last_hour_is_remembered_by_when_messages_were_seen(account: Account) -> None:
    attempt(account, timedelta(hours=2))
    at = attempt(account, timedelta(minutes=5), took_ms=700)
    found = remembered(account)
    assert list(found.times_ms) == [ms(at) + 700]
    assert found.day_used == 2
    assert (found.last_ms, found.free_at_ms) == (ms(at), ms(at) + 1500)


def test_whatever_became_of_it_it_counts(account: Account) -> None:
    for outcome in ("unknown", "rejected", "rate_limited"):
        attempt(account, timedelta(minutes=1), outcome=outcome)
    assert remembered(account).day_used == 3


def test_other_accounts_other_actions_and_other_days_do_not_count(account: Account, owner: User) -> None:
    attempt(AccountFactory.create(owner=owner), timedelta(minutes=1))
    attempt(account, timedelta(minutes=1), action="email")
    attempt(account, timedelta(days=1))
    assert remembered(account).day_used == 0


def test_what_a_dead_pump_may_have_in_the_air_counts_as_arriving_now(account: Account) -> None:
    RunTargetFactory.create(account=account, run__reminder__owner=account.owner, begun=True)
    found = remembered(account)
    assert (found.day_used, len(found.times_ms), found.batch) == (1, 1, 1)


def test_permits_in_hand_count_and_stay_open(account: Account) -> None:
    RunTargetFactory.create(account=account, run__reminder__owner=account.owner, begun=True)
    at = ms(datetime.now(UTC))
    found = remembered(account, in_hand={"a-1": at, "a-2": at + 900}, in_the_air=1)
    assert (found.day_used, list(found.times_ms)) == (2, [])
    assert found.in_flight == {"a-1": at, "a-2": at + 900}
    assert found.free_at_ms == at + 900 + 1500


def test_the_place_in_the_batch_is_remembered(account: Account) -> None:
    for seconds in (120, 20, 15, 10):
        attempt(account, timedelta(seconds=seconds))
    assert remembered(account).batch == 3


def test_a_hold_is_remembered(account: Account) -> None:
    account.held_until = datetime.now(UTC) + timedelta(minutes=3)
    assert remembered(account).held_until_ms == ms(account.held_until)
