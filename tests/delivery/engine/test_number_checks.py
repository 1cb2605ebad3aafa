"""SPEC's numbers of P5, P6 and P7 as the engine really keeps them, by the ledger and the database."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from activity.models import Attempt
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.permits import Permits
from delivery.engine.wakeups import take_lease
from delivery.models import Run
from delivery.states import PauseReason, RunStatus, TargetStatus
from tests.delivery.stage import Stage, becomes, counted, only_target, serve

SLACK = timedelta(seconds=2)  # between an answer and its record, on a busy machine


@pytest.fixture
def as_specified(quick: Settings) -> Settings:
    """The waits that SPEC gives, whole."""
    quick.BACKOFF_BASE_SECONDS, quick.NOT_CONNECTED_SECONDS, quick.RATE_LIMITED_SECONDS = 5, 20, 60
    quick.PUMP_SECONDS = 0.5
    return quick


def begun(run: Run) -> list[datetime]:
    return list(Attempt.objects.filter(run=run).order_by("at").values_list("at", flat=True))


# P7: how long is waited.


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 5), (2, 10), (3, 20), (4, 40)])
def test_a_network_failure_waits_twice_as_long_each_time(
    stage: Stage, as_specified: Settings, attempt: int, seconds: int
) -> None:
    account = stage.account()
    stage.behave(account, error_rate=1)
    run = stage.fire(account, to=1)
    run.targets.update(attempts=attempt - 1)
    pump.pump(account.pk)
    target = only_target(run)
    assert (target.status, target.attempts) == (TargetStatus.PENDING, attempt)
    assert (
        timedelta(seconds=seconds) <= target.not_before - begun(run)[-1] < timedelta(seconds=seconds) + SLACK
    )
    account.refresh_from_db()
    assert account.held_until is None, "its account goes on with the others"


@pytest.mark.parametrize(
    ("trouble", "seconds", "gap"),
    [({"not_connected": True}, 20, 0.001), ({"rate_limit": 1}, None, 69)],
    ids=["not connected", "rate limited"],
)
def test_an_account_is_held_for_as_long_as_its_answer_asks(
    stage: Stage, as_specified: Settings, trouble: dict[str, object], seconds: int | None, gap: float
) -> None:
    account = stage.account(group_concurrency=1)
    stage.behave(account, **trouble)
    run = stage.fire(account, to=3)
    pump.pump(account.pk)
    asked = seconds or 60  # the sandbox asks for what is left of its minute
    account.refresh_from_db()
    assert account.held_until is not None
    held = account.held_until - begun(run)[-1]
    assert timedelta(seconds=asked - 3) <= held < timedelta(seconds=asked) + SLACK
    # 60,000 per minute are 1 ms apart; one per minute is 60 s, and the jitter above that.
    assert account.slow_factor * 0.001 == pytest.approx(gap, rel=0.1)
    assert account.wake_at == account.waiting_until
    assert len(begun(run)) <= 2, "nothing leaves meanwhile"


def test_a_rate_limit_answer_slows_down_up_to_the_longest_gap_and_each_twenty_sends_take_one_step_back(
    stage: Stage, as_specified: Settings, redis: Redis
) -> None:
    as_specified.SLOW_DOWN_LONGEST_GAP_SECONDS = 0.008  # eight times the usual gap of 1 ms
    account = stage.account(slow_factor=6, group_concurrency=1)
    stage.behave(account, rate_limit=1)
    run = stage.fire(account, to=2)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert account.slow_factor == pytest.approx(8)
    stage.behave(account, rate_limit=0)
    lifecycle.cancel(run)
    Account.objects.update(held_until=None, slow_factor=1.5, clean_sends=0, trouble_kind="")
    redis.flushdb()
    serve(stage.fire(account, to=19), account)
    account.refresh_from_db()
    assert account.slow_factor == 1.5
    serve(stage.fire(account, to=1), account)
    account.refresh_from_db()
    assert account.slow_factor == 1


# P6: how errors slow a run down, and stop it.


@pytest.mark.parametrize(("rate", "times"), [(0.0, 1.0), (0.05, 1.0), (0.0501, 1.5), (1.0, 1.5)])
def test_above_five_percent_every_delay_is_exactly_half_as_long_again(
    stage: Stage, rate: float, times: float
) -> None:
    account = stage.account(limits={"gap_min": 4, "gap_max": 4})
    lease = take_lease(account.pk)
    assert lease is not None
    permits = Permits(account, lease, "message")
    assert permits.shortest_gap(1, rate) == pytest.approx(4 * times)
    assert permits._gaps(1, 20, rate) == [4000 * times] * 20


def test_errors_stretch_no_delay_beyond_the_longest(stage: Stage) -> None:
    account = stage.account(limits={"gap_min": 8, "gap_max": 8})
    lease = take_lease(account.pk)
    assert lease is not None
    assert Permits(account, lease, "message").shortest_gap(1, 0.5) == 10


def test_the_errors_of_the_whole_run_count_for_its_delays_also_after_a_resume(stage: Stage) -> None:
    account = stage.account(limits={"gap_min": 0.2, "gap_max": 0.2})
    run = becomes(stage.fire(account, to=103), *[TargetStatus.SENT] * 94, *[TargetStatus.FAILED] * 6)
    run = lifecycle.resume(lifecycle.pause(run, reason=PauseReason.OPERATOR))
    serve(run, account)
    assert min(after - before for before, after in pairwise(begun(run))) >= timedelta(seconds=0.3)


def test_a_resumed_run_is_stopped_again_only_by_ten_new_attempts(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    people = stage.recipients(40)
    stage.behave(account, reject=[person.address for person in people])
    run = serve(stage.fire(account, to=people), account)
    assert (run.pause_reason, run.failed) == (PauseReason.ERROR_RATE, 10)
    run = serve(lifecycle.resume(run), account)
    assert (run.pause_reason, run.failed) == (PauseReason.ERROR_RATE, 20)
    stage.behave(account, reject=[])
    run = serve(lifecycle.resume(run), account)
    assert (run.status, counted(run)) == (RunStatus.PARTIAL, {"sent": 20, "failed": 20})


# P5: batches.


def test_no_batch_is_longer_than_allowed_over_shifts_and_a_redis_that_forgets(
    stage: Stage, quick: Settings, redis: Redis
) -> None:
    quick.PUMP_SECONDS, quick.HORIZON_SECONDS = 0.4, 0.1
    pause = timedelta(seconds=0.7)
    account = stage.account(limits={"batch_size": 3, "batch_pause": pause.total_seconds()})
    run = stage.fire(account, to=14)
    for number in range(60):
        pump.pump(account.pk)
        if number % 4 == 3:
            redis.flushdb()
        run.refresh_from_db()
        if run.status == RunStatus.SUCCESS:
            break
    assert counted(run) == {"sent": 14}
    times = begun(run)
    for first in range(len(times) - 3):
        gaps = [after - before for before, after in pairwise(times[first : first + 4])]
        assert max(gaps) >= pause, "four in a row without a pause"
