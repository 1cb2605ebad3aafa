"""A forecast against what the receiver's own log says of the run: no more than a tenth apart.

A minute of the limits is short here, and the time is that of the receiver from its first message to its last.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import Account
from delivery.planning import forecasts
from tests.delivery.stage import Stage, serve

UNPACED = 100_000


@pytest.mark.parametrize(
    ("targets", "parts", "minute", "per_minute", "limits"),
    [
        pytest.param(40, 1, 2.0, 16, {}, id="a rate"),
        pytest.param(8, 3, 2.0, 12, {}, id="parts"),
        pytest.param(
            30,
            1,
            6.0,
            UNPACED,
            {"gap_min": 1, "gap_max": 1.5, "batch_size": 10, "batch_pause": 1},
            id="batches",
        ),
        pytest.param(12, 1, 0.5, UNPACED, {"per_hour": 60, "gap_min": 24, "gap_max": 24}, id="a gap"),
    ],
)
def test_what_was_foreseen_comes_true(
    stage: Stage,
    quick: Settings,
    targets: int,
    parts: int,
    minute: float,
    per_minute: int,
    limits: dict[str, Any],
) -> None:
    quick.MINUTE_SECONDS = minute
    account = stage.account(per_minute=per_minute, limits=limits)
    comes_true(stage, account, targets, parts)


def test_a_slow_down_and_its_recovery_come_true(stage: Stage, quick: Settings) -> None:
    """5 messages at 2.25 times the gap of 0.3 s, 5 at 1.5 times, and then as usual."""
    quick.MINUTE_SECONDS, quick.HORIZON_SECONDS, quick.SLOW_DOWN_RECOVERY_SENDS = 18, 0.2, 5
    limits = {"gap_min": 1, "gap_max": 1}
    account = stage.account(per_minute=UNPACED, limits=limits, slow_factor=2.25)
    comes_true(stage, account, 16, 1)


TRIES = 3  # a machine that stalls holds messages up; none makes them leave early


def comes_true(stage: Stage, account: Account, targets: int, parts: int) -> None:
    for _ in range(TRIES):
        share = _share(stage, account, targets, parts)
        assert share >= 0.9  # never earlier than foreseen, in any try
        if share <= 1.1:
            return
    pytest.fail(f"It took {share:.2f} of what was foreseen, the last of {TRIES} times.")


def _share(stage: Stage, account: Account, targets: int, parts: int) -> float:
    """Return the real duration as a share of the forecast one."""
    before = len(stage.received(account))
    run = stage.fire(account, to=targets, parts=parts)
    timeline = forecasts.forecast(run, now=datetime.now(UTC)).timeline
    serve(run, account)
    received = [line["at"] for line in stage.received(account)][before:]
    assert len(received) == targets * parts
    assert timeline.starts_at is not None
    assert timeline.finishes_at is not None
    took = timedelta(milliseconds=max(received) - min(received))
    return took / (timeline.finishes_at - timeline.starts_at)
