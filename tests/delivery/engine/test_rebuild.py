"""The knowledge of the ledger about an account (SPEC P8)."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil

import pytest

from accounts.models import Account, TestMessage, User
from delivery.conf import longest_send
from delivery.engine.rebuild import Hand, Spans, memory
from delivery.limiter import Day, Memory
from delivery.pacing import Pace
from tests.factories import AccountFactory, AttemptFactory, RunTargetFactory

pytestmark = pytest.mark.django_db

HOUR_MS = 3_600_000
FENCE = 7  # of the asking pump
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


def remembered(
    account: Account,
    *,
    in_hand: Mapping[str, int] | None = None,
    in_flight: int = 0,
    margin_ms: int = 0,
    since_midnight: timedelta = timedelta(hours=12),
    long_ms: tuple[int, ...] = (),
) -> Memory:
    now = datetime.now(UTC)
    midnight = now - since_midnight
    day = Day(start_ms=ms(midnight), end_ms=ms(midnight + timedelta(days=1)))
    return memory(
        account,
        "message",
        pace=PACE,
        day=day,
        spans=Spans(now_ms=ms(now), reach_ms=HOUR_MS, gap_ms=1500, margin_ms=margin_ms, long_ms=long_ms),
        hand=Hand(fence=FENCE, permits=in_hand or {}, in_flight=in_flight),
    )


def test_an_account_that_never_sent_has_nothing_to_remember(account: Account) -> None:
    found = remembered(account)
    assert (found.day_used, list(found.times_ms), found.batch, found.last_ms) == (0, [], 0, 0)


def test_long_spans_are_remembered_in_buckets(account: Account) -> None:
    week, width = 7 * 24 * HOUR_MS, 7 * 24 * HOUR_MS // 96
    times = [attempt(account, timedelta(days=days)) for days in (1, 1, 3, 6, 8)]
    found = remembered(account, long_ms=(week,)).counts[week]
    assert sum(found.values()) == 4
    assert found == Counter(ms(at) // width for at in times[:4])


def test_a_message_in_doubt_counts_in_long_spans(account: Account) -> None:
    day = 24 * HOUR_MS
    RunTargetFactory.create(account=account, run__reminder__owner=account.owner, begun=True)
    (bucket,) = remembered(account, long_ms=(day,)).counts[day]
    latest = ms(datetime.now(UTC) + longest_send(with_file=False))
    assert latest // (day // 96) - 1 <= bucket <= latest // (day // 96)


@pytest.mark.parametrize("outcome", ["not_connected", "unreachable"])
def test_what_never_left_counts_nowhere(account: Account, outcome: str) -> None:
    attempt(account, timedelta(minutes=5), outcome=outcome)
    found = remembered(account, long_ms=(24 * HOUR_MS,))
    assert (found.day_used, list(found.times_ms), found.batch) == (0, [], 0)
    assert dict(found.counts[24 * HOUR_MS]) == {}


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


def test_what_another_pump_may_have_in_the_air_counts_as_arriving_as_late_as_it_can(account: Account) -> None:
    target = RunTargetFactory.create(account=account, run__reminder__owner=account.owner, begun=True)
    found = remembered(account)
    assert (found.day_used, len(found.times_ms), found.batch) == (1, 1, 1)
    assert target.begun_at is not None
    assert list(found.times_ms) == [ms(target.begun_at + longest_send(with_file=False))]


def test_what_another_pump_began_long_ago_counts_as_arriving_now(account: Account) -> None:
    long_ago = datetime.now(UTC) - timedelta(minutes=30)
    RunTargetFactory.create(
        account=account, run__reminder__owner=account.owner, begun=True, begun_at=long_ago
    )
    before = ms(datetime.now(UTC))
    [at] = remembered(account).times_ms
    assert at >= before


def test_what_a_stale_pump_has_only_claimed_may_just_be_beginning(account: Account) -> None:
    """The statement that lets it begin may have been under way when the next pump took its lease."""
    RunTargetFactory.create(
        account=account, run__reminder__owner=account.owner, claimed=True, fence=FENCE - 1
    )
    RunTargetFactory.create(account=account, run__reminder__owner=account.owner, claimed=True, fence=FENCE)
    assert remembered(account).day_used == 1


def test_what_lands_meanwhile_takes_nothing_from_what_a_stale_pump_has_in_the_air(account: Account) -> None:
    for _ in range(2):
        RunTargetFactory.create(
            account=account, run__reminder__owner=account.owner, begun=True, fence=FENCE - 1
        )
    at = ms(datetime.now(UTC))
    found = remembered(account, in_hand={"a-1": at, "a-2": at, "a-3": at}, in_flight=3)
    assert (found.day_used, len(found.times_ms)) == (5, 2)


def test_a_message_counts_as_seen_later_by_as_much_as_clocks_may_differ(account: Account) -> None:
    early, late = attempt(account, timedelta(minutes=5)), attempt(account, timedelta(seconds=1))
    before = ms(datetime.now(UTC))
    found = remembered(account, margin_ms=4000)
    assert found.times_ms[0] == ms(early) + 4000
    assert before <= found.times_ms[1] < ms(late) + 4000, "though not later than now"
    assert found.last_ms == found.times_ms[1]
    assert found.free_at_ms == found.last_ms + 1500


def test_what_a_clock_that_was_ahead_dated_later_than_now_was_seen_by_now(account: Account) -> None:
    attempt(account, -timedelta(hours=1))
    found = remembered(account, margin_ms=4000)
    assert len(found.times_ms) == 1
    assert max(*found.times_ms, found.last_ms, found.free_at_ms - 1500) <= ms(datetime.now(UTC))


def test_what_may_have_been_seen_within_the_hour_or_the_day_counts(account: Account) -> None:
    attempt(account, timedelta(hours=1, seconds=2))
    attempt(account, timedelta(hours=12, seconds=2))
    found = remembered(account, margin_ms=4000)
    assert (found.day_used, len(found.times_ms)) == (2, 1)


@pytest.mark.parametrize("since_midnight", [timedelta(hours=12), timedelta(minutes=1)])
def test_a_test_whose_worker_died_counts_in_its_hour_also_after_midnight(
    account: Account, since_midnight: timedelta
) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=5)
    TestMessage.objects.create(
        account=account,
        person=account.owner,
        address="+60123456789",
        kind=TestMessage.Kind.TEST,
        asked_at=begun,
        begun_at=begun,
        messages=2,
    )
    assert len(remembered(account, since_midnight=since_midnight).times_ms) == 2


def test_permits_in_hand_count_and_stay_open(account: Account) -> None:
    RunTargetFactory.create(account=account, run__reminder__owner=account.owner, begun=True, fence=FENCE)
    at = ms(datetime.now(UTC))
    found = remembered(account, in_hand={"a-1": at, "a-2": at + 900}, in_flight=1)
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
