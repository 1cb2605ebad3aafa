"""The targets and runs that a dead pump left behind (SPEC R7, R8)."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from accounts.models import Account, User
from activity.models import Attempt
from delivery.engine import rescue
from delivery.engine.lease import Lease
from delivery.models import Run
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire
from tests.delivery.stage import abandon, add_up, counted
from tests.factories import ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

LONG_AGO = timedelta(minutes=2)


@pytest.fixture
def run(owner: User) -> Run:
    return fire(ReminderFactory.create(owner=owner, recipients=3, around_the_clock=True))


@pytest.fixture
def account(run: Run) -> Account:
    return Account.objects.get()


def take_over(account: Account, *, idempotent: bool, files_inside: bool = False) -> None:
    account.refresh_from_db()
    account.fence += 1
    account.save()
    lease = Lease(account_id=account.pk, token="t", fence=account.fence)
    rescue.reclaim(lease, idempotent=idempotent, files_inside=files_inside)


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_was_claimed_and_not_begun_is_pending_again(
    run: Run, account: Account, idempotent: bool
) -> None:
    target = abandon(run, account, begun=False)
    take_over(account, idempotent=idempotent)
    target.refresh_from_db()
    assert (target.status, target.attempts, target.claimed_at) == (TargetStatus.PENDING, 0, None)
    assert not Attempt.objects.exists(), "nothing left"
    add_up(run)


def test_what_was_begun_is_sent_again_where_the_service_takes_a_key(run: Run, account: Account) -> None:
    target = abandon(run, account, begun=True)
    take_over(account, idempotent=True)
    target.refresh_from_db()
    assert (target.status, target.attempts) == (TargetStatus.PENDING, 1)
    assert Attempt.objects.get().outcome == "unknown", "it counts against the limits"
    add_up(run)


def test_what_was_begun_is_unconfirmed_where_it_takes_none(run: Run, account: Account) -> None:
    target = abandon(run, account, begun=True, ago=LONG_AGO)
    take_over(account, idempotent=False)
    target.refresh_from_db()
    assert (target.status, target.error) == (TargetStatus.UNCONFIRMED, "interrupted while sending")
    assert target.settled_at is not None
    add_up(run)


def test_it_stays_as_it_is_while_it_may_still_be_under_way(run: Run, account: Account) -> None:
    target = abandon(run, account, begun=True)
    take_over(account, idempotent=False)
    target.refresh_from_db()
    assert target.status == TargetStatus.SENDING
    assert not Attempt.objects.exists()


@pytest.mark.parametrize(
    ("media", "files_inside", "status"),
    [
        (True, True, TargetStatus.SENDING),
        (True, False, TargetStatus.UNCONFIRMED),
        (False, True, TargetStatus.UNCONFIRMED),
    ],
)
def test_a_file_inside_its_message_may_be_under_way_for_longer(
    run: Run, account: Account, media: bool, files_inside: bool, status: TargetStatus
) -> None:
    run.parts = [{"kind": "text", "text": "Hello"}, *([{"kind": "media", "sha256": "0"}] if media else [])]
    run.save()
    target = abandon(run, account, begun=True, ago=timedelta(minutes=1))
    take_over(account, idempotent=False, files_inside=files_inside)
    target.refresh_from_db()
    assert target.status == status


def test_the_last_attempt_is_not_repeated_for_ever(run: Run, account: Account, settings: Settings) -> None:
    target = abandon(run, account, begun=True)
    run.targets.filter(pk=target.pk).update(attempts=settings.MAX_ATTEMPTS)
    take_over(account, idempotent=True)
    target.refresh_from_db()
    assert target.status == TargetStatus.UNCONFIRMED


def test_what_the_living_pump_holds_is_left_alone(run: Run, account: Account) -> None:
    target = abandon(run, account, begun=True, ago=LONG_AGO)
    lease = Lease(account_id=account.pk, token="t", fence=account.fence)
    rescue.reclaim(lease, idempotent=True, files_inside=False)
    target.refresh_from_db()
    assert target.status == TargetStatus.SENDING


def test_a_run_of_which_that_was_the_last_is_over(run: Run, account: Account) -> None:
    for _ in range(3):
        abandon(run, account, begun=True, ago=LONG_AGO)
    take_over(account, idempotent=False)
    run.refresh_from_db()
    assert run.status == RunStatus.PARTIAL
    assert counted(run) == {"unconfirmed": 3}


def test_a_canceled_run_does_not_get_its_targets_back(run: Run, account: Account) -> None:
    abandon(run, account, begun=True)
    run.refresh_from_db()
    run.canceled_at, run.status, run.pause_reason = run.fired_at, RunStatus.PAUSED, "operator"
    run.save()
    take_over(account, idempotent=True)
    assert counted(run) == {
        "skipped": 2,
        "unconfirmed": 1,
    }  # one had left, and nobody knows whether it arrived


@pytest.mark.parametrize("ago", [timedelta(days=60), timedelta(seconds=-30)], ids=["months", "a clock ahead"])
def test_however_long_ago_it_was_begun(run: Run, account: Account, ago: timedelta) -> None:
    target = abandon(run, account, begun=True, ago=ago)
    take_over(account, idempotent=True)
    target.refresh_from_db()
    assert target.status == TargetStatus.PENDING
    assert Attempt.objects.get().took_ms >= 0
