"""The clock of Redis or of a worker is set: nothing leaves meanwhile, no limit is crossed, and it goes on by itself.

The clock of Redis is moved by libfaketime. Without it only `tests/delivery/engine/test_clocks_apart.py` and
`test_limiter_model.py` let that clock jump, inside one process.
"""

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab, Sender
from tests.chaos.partition import HOUR_MS, Partition, partition
from tests.chaos.switch import LIBFAKETIME, FakeTime

HOUR = 3600
PER_HOUR = 20
LIMITS = {"per_minute": 3000, "per_hour": PER_HOUR, "gap_min": 0.3, "gap_max": 0.3}

needs_libfaketime = pytest.mark.skipif(
    LIBFAKETIME is None and not os.environ.get("FAKETIME_REQUIRED"),
    reason="libfaketime is not installed.",
)


@pytest.fixture
def clock(tmp_path: Path) -> FakeTime:
    tmp_path.chmod(0o755)
    return FakeTime(tmp_path / f"time-{uuid4().hex[:6]}")


def nothing_leaves(parts: Partition, sender: Sender) -> None:
    parts.waits_for(sender, "clocks")
    before = len(sender.seen.received())
    time.sleep(5)
    assert len(sender.seen.received()) == before


def finishes(parts: Partition, sender: Sender, run: int) -> None:
    assert parts.lab.settled(run, seconds=180).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(parts.lab.operator.targets(run)), 1)
    assert sender.seen.worst(HOUR_MS) <= PER_HOUR


@needs_libfaketime
@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_the_clock_of_redis_is_set_and_set_right_again(lab: Lab, clock: FakeTime, by: int) -> None:
    with partition(lab, clock=clock) as parts:
        parts.start()
        sender = lab.add_account(limits=LIMITS, latency_ms=20)
        run = lab.operator.fire(sender.id, targets=2 * PER_HOUR)
        lab.delivered(sender, 10)
        clock.move(by)
        nothing_leaves(parts, sender)
        word = "ahead of" if by > 0 else "behind"
        assert (
            lab.operator.account(sender.id).waiting_detail
            == f"The clock of Redis is 60 minutes {word} the database."
        )
        clock.move(0)
        finishes(parts, sender, run)


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_the_clock_of_a_worker_is_set_and_set_right_again(lab: Lab, clock: FakeTime, by: int) -> None:
    with partition(lab) as parts:
        parts.start(clock=clock)
        sender = lab.add_account(limits=LIMITS, latency_ms=20)
        run = lab.operator.fire(sender.id, targets=2 * PER_HOUR)
        lab.delivered(sender, 10)
        clock.move(by)
        nothing_leaves(parts, sender)
        assert "worker" in lab.operator.account(sender.id).waiting_detail
        clock.move(0)
        finishes(parts, sender, run)


@needs_libfaketime
def test_a_clock_that_is_off_by_little_stops_nothing(lab: Lab, clock: FakeTime) -> None:
    with partition(lab, clock=clock) as parts:
        parts.start()
        sender = lab.add_account(limits=LIMITS, latency_ms=20)
        run = lab.operator.fire(sender.id, targets=2 * PER_HOUR)
        for seconds in (1, 0, -1, 0):
            lab.delivered(sender, len(sender.seen.delivered()) + 3)
            clock.move(seconds)
        finishes(parts, sender, run)
