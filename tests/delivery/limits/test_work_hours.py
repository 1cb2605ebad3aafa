"""An account's working hours and its ramp: the same by Python and by the last look's SQL, and kept by the engine."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from delivery import lifecycle
from delivery.engine import pump, recording
from delivery.engine.sql import run as query
from delivery.forecast import simulate
from delivery.limits import work_hours
from delivery.models import RunTarget
from delivery.pacing import Limits
from delivery.planning.values import Allowance, Job, Sender
from delivery.planning.workload import senders
from delivery.states import AccountStatus, TargetStatus
from delivery.window import Window, closes_at, is_open
from tests.delivery.stage import Stage, counted, sentence_of
from tests.factories import AccountFactory

HOUR = timedelta(hours=1)


def sql_end(account: Account, at: datetime) -> datetime | None:
    """Return when the hours that are open at a moment end, as the last look reads it; None outside of them."""
    sql = work_hours.ENDS.format(at="%(at)s::timestamptz")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT NULLIF({sql}, '-infinity') FROM accounts_account a WHERE a.id = %(id)s",
            {"at": at, "id": account.pk},
        )
        ends_at: datetime | None = cursor.fetchone()[0]
    return ends_at


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"])
@pytest.mark.parametrize(
    "hours",
    [
        (9, 17, 127),
        (0, 24, 0b0011111),
        (22, 24, 127),
        (0, 3, 0b1000001),
        (2, 3, 127),
        (None, None, 0b0000111),
    ],
)
def test_the_last_look_knows_the_same_hours_as_the_forecast(
    zone: str, hours: tuple[int | None, int | None, int]
) -> None:
    start, end, days = hours
    account = AccountFactory.create(zone=zone, work_start_hour=start, work_end_hour=end, work_days=days)
    window = work_hours.hours_of(account)
    assert window is not None
    # Over a change of the clocks in both halves of the year.
    for first in (datetime(2026, 3, 27, 0, 10, tzinfo=UTC), datetime(2026, 10, 24, 0, 10, tzinfo=UTC)):
        for number in range(24 * 9):
            at = first + number * HOUR
            expected = closes_at(window, at) if is_open(window, at) else None
            assert sql_end(account, at) == expected, at


@pytest.mark.django_db
def test_an_account_without_hours_has_none() -> None:
    account = AccountFactory.create()
    assert work_hours.hours_of(account) is None
    assert work_hours.begin_at(account, now=timezone.now()) is None


def closed_for_now(*, opens_in: int = 3) -> dict[str, Any]:
    """Return hours of a zone in which it is before nine, by `opens_in` hours or a little less."""
    ahead = (9 - opens_in - datetime.now(UTC).hour) % 24
    zone = f"Etc/GMT{-ahead if ahead <= 14 else 24 - ahead:+d}"
    return {"zone": zone, "work_start_hour": 9, "work_end_hour": 17}


def open_now() -> dict[str, Any]:
    ahead = (12 - datetime.now(UTC).hour) % 24
    return {
        "zone": f"Etc/GMT{-ahead if ahead <= 14 else 24 - ahead:+d}",
        "work_start_hour": 9,
        "work_end_hour": 17,
    }


# The engine.

ENGINE = pytest.mark.django_db(transaction=True)


@ENGINE
def test_nothing_leaves_outside_the_hours_and_the_sentence_says_when_they_begin(
    stage: Stage, redis: Redis
) -> None:
    account = stage.account(name="Office phone", **closed_for_now())
    run = stage.fire(account, to=3)
    for _ in range(2):
        pump.pump(account.pk)
        redis.flushdb()
    assert stage.received(account) == []
    assert counted(run) == {"pending": 3}
    account.refresh_from_db()
    assert account.waiting_until is not None
    assert account.waiting_until.astimezone(UTC) == account.wake_at
    assert account.waiting_until - timezone.now() <= 3 * HOUR
    assert sentence_of(account).startswith("Working hours of Office phone begin to")
    assert sentence_of(account).endswith(" at 09:00.")


@ENGINE
def test_within_the_hours_the_account_sends(stage: Stage) -> None:
    account = stage.account(**open_now())
    run = stage.fire(account, to=3)
    pump.pump(account.pk)
    assert counted(run) == {"sent": 3}


def claimed(stage: Stage, account: Account) -> RunTarget:
    """Return a target that a pump of the account has claimed."""
    run = stage.fire(account, to=1)
    account.refresh_from_db()
    target = run.targets.get()
    RunTarget.objects.filter(pk=target.pk).update(
        status=TargetStatus.SENDING, fence=account.fence, claimed_at=timezone.now()
    )
    return target


def may_leave(account: Account, target: RunTarget) -> bool:
    now = datetime.now(UTC)
    intent = recording.Intent(target_id=target.pk, part=0, fence=account.fence, wished_at=now)
    asked = recording.begin([intent], now=now, guard=timedelta(seconds=1), tolerance=timedelta(seconds=5))
    return query(asked)[0] is not None


@ENGINE
def test_hours_that_are_set_after_the_claim_hold_in_the_last_look(stage: Stage) -> None:
    account = stage.account()
    target = claimed(stage, account)
    Account.objects.filter(pk=account.pk).update(**closed_for_now())
    assert not may_leave(account, target)
    Account.objects.filter(pk=account.pk).update(**open_now())
    assert may_leave(account, target)


@ENGINE
def test_leave_ends_with_the_hours(stage: Stage) -> None:
    account = stage.account(**open_now())
    target = claimed(stage, account)
    now = datetime.now(UTC)
    intent = recording.Intent(target_id=target.pk, part=0, fence=account.fence, wished_at=now)
    [begun] = query(recording.begin([intent], now=now, guard=timedelta(), tolerance=timedelta(seconds=5)))
    assert begun is not None
    hours = work_hours.hours_of(account)
    assert hours is not None
    assert begun.closes_at == closes_at(hours, now)


@ENGINE
def test_what_was_claimed_before_an_account_connected_again_is_given_back(stage: Stage) -> None:
    account = stage.account()
    target = claimed(stage, account)
    Account.objects.filter(pk=account.pk).update(reconnected_at=timezone.now() + timedelta(seconds=1))
    assert not may_leave(account, target)


@ENGINE
def test_after_connecting_again_the_pace_grows_and_a_lost_redis_does_not_shorten_it(
    stage: Stage, redis: Redis, settings: Settings
) -> None:
    settings.RECONNECT_RAMP_MINUTES = 60
    settings.PUMP_SECONDS = 2
    account = stage.account(
        per_minute=6000, limits={"gap_min": 0.2, "gap_max": 0.2}, reconnected_at=timezone.now()
    )
    run = stage.fire(account, to=40)
    for _ in range(2):
        pump.pump(account.pk)
        redis.flushdb()
    times = [line["at"] for line in stage.received(account)]
    assert 0 < counted(run).get("sent", 0) < 6, "ten times fewer than two in four seconds of full pace"
    assert all(later - earlier > 1500 for earlier, later in pairwise(times))
    assert "its pace grows" in sentence_of(account)


@ENGINE
@pytest.mark.parametrize(
    ("status", "ramps"),
    [(AccountStatus.OFFLINE, True), (AccountStatus.FLAGGED, True), (AccountStatus.PAUSED, False)],
)
def test_only_an_account_that_was_not_connected_starts_slowly(
    stage: Stage, status: AccountStatus, ramps: bool
) -> None:
    account = stage.account(status=status)
    lifecycle.start_account(account)
    account.refresh_from_db()
    assert (account.reconnected_at is not None) is ramps


@ENGINE
def test_an_active_account_that_was_not_connected_for_a_moment_starts_slowly_too(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, not_connected=True)
    run = stage.fire(account, to=2)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert account.reconnected_at is None
    stage.behave(account, not_connected=False)
    for _ in range(5):
        pump.pump(account.pk)
    assert counted(run) == {"sent": 2}
    account.refresh_from_db()
    assert account.reconnected_at is not None


# The forecast.

NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)


def job(targets: int) -> Job:
    return Job(
        targets=targets, window=Window(start_hour=0, end_hour=24, zone="UTC"), ready_at=NIGHT, own=True
    )


def test_the_forecast_waits_for_the_hours() -> None:
    hours = Window(start_hour=9, end_hour=10, zone="Europe/Berlin")
    sender = Sender(
        zone="UTC",
        allowances={"message": Allowance(limits=Limits(per_minute=1))},
        jobs=[job(90)],
        hours=hours,
    )
    found = simulate([sender], now=NIGHT)
    assert found.starts_at == datetime(2026, 11, 19, 8, tzinfo=UTC)
    assert found.finishes_at is not None
    assert (
        datetime(2026, 11, 20, 8, 25, tzinfo=UTC)
        < found.finishes_at
        < datetime(2026, 11, 20, 8, 35, tzinfo=UTC)
    )


def test_hours_that_never_overlap_with_the_window_never_finish() -> None:
    night = Job(targets=1, window=Window(start_hour=1, end_hour=2, zone="UTC"), ready_at=NIGHT, own=True)
    hours = Window(start_hour=9, end_hour=10, zone="UTC")
    sender = Sender(zone="UTC", allowances={"message": Allowance(limits=Limits())}, jobs=[night], hours=hours)
    assert simulate([sender], now=NIGHT).finishes_at is None


@pytest.mark.django_db
def test_the_forecast_knows_what_the_ramp_costs(settings: Settings) -> None:
    settings.RECONNECT_RAMP_MINUTES = 10
    account = AccountFactory.create(reconnected_at=NIGHT)
    [ready] = senders([account], {account.pk: [job(1)]}, now=NIGHT)
    assert ready.free_at == NIGHT + timedelta(minutes=4.5)
    [later] = senders([account], {account.pk: [job(1)]}, now=NIGHT + timedelta(minutes=10))
    assert later.free_at == NIGHT + timedelta(minutes=10)


# The doors.


@pytest.mark.django_db
def test_the_page_of_an_account_saves_its_hours_and_refuses_what_is_none(client: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    client.force_login(owner)
    given: dict[str, Any] = {"name": account.name, "profile": account.profile, "zone": "Europe/Berlin"}
    given |= {"service-base_url": "http://127.0.0.1:8081", "service-account": "a", "service-token": "t"}
    given |= {"own_address": "", "service-idempotent": "yes", "service-pairing": "no"}
    given |= {"hours-work_start_hour": "9", "hours-work_end_hour": "17", "hours-work_days": ["1", "2"]}
    answer = client.post(f"/accounts/{account.pk}/edit/", given)
    assert answer.status_code == 302, [
        answer.context[name].errors for name in ("form", "pace", "hours", "credentials")
    ]
    account.refresh_from_db()
    assert (account.work_start_hour, account.work_end_hour, account.work_days) == (9, 17, 3)
    assert "09:00 to 17:00, Mon, Tue" in client.get(f"/accounts/{account.pk}/").content.decode()
    for start, end in (("17", "9"), ("9", ""), ("", "9")):
        wrong = given | {"hours-work_start_hour": start, "hours-work_end_hour": end}
        assert client.post(f"/accounts/{account.pk}/edit/", wrong).status_code == 200
