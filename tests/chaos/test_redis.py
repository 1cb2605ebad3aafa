"""Redis loses its memory, dies, or comes back empty mid-run: no burst, no limit crossed, nothing lost (P8)."""

import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab

PER_HOUR = 30  # messages leave faster than this allows: a limiter that forgot would start to count anew
GAP_MS = 100
LIMITS = {"per_minute": 600, "per_hour": PER_HOUR, "gap_min": GAP_MS / 1000, "gap_max": GAP_MS / 1000}
TARGETS = 40


def flush(lab: Lab) -> None:
    with lab.redis() as redis:
        redis.flushall()


def restart(lab: Lab) -> None:
    lab.servers.kill_redis()
    time.sleep(2)
    lab.servers.redis.start()


def restart_empty(lab: Lab) -> None:
    lab.servers.kill_redis()
    lab.servers.lose_redis_data()
    lab.servers.redis.start()


@pytest.mark.parametrize("disaster", [flush, restart, restart_empty])
def test_a_redis_that_is_lost_mid_run_costs_no_message_and_no_limit(
    lab: Lab, disaster: Callable[[Lab], None]
) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=LIMITS, latency_ms=50)
    run = lab.operator.fire(sender.id, targets=TARGETS)
    lab.delivered(sender, 10)

    disaster(lab)

    lab.until(lambda: lab.operator.account(sender.id).waiting_for == "per_hour", "the hour is used up")
    assert len(sender.seen.received()) <= PER_HOUR
    lab.operator.change_limits(sender.id, per_hour=10 * PER_HOUR)
    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)
    # By the ledger: between here and the gateway's log a busy machine may hold a message up, and not the next.
    assert min(after - before for before, after in pairwise(lab.operator.begun(run))) >= GAP_MS


@pytest.mark.soak
def test_no_minute_is_ever_over_its_limit_while_redis_is_lost_again_and_again(lab: Lab) -> None:
    lab.want_workers(2)
    senders = [lab.add_account(limits={"per_minute": 120}, latency_ms=100) for _ in range(4)]
    runs = [lab.operator.fire(sender.id, targets=300) for sender in senders]
    for disaster in (flush, restart, flush, restart_empty, flush, restart):
        time.sleep(20)
        disaster(lab)
    for sender, run in zip(senders, runs, strict=True):
        assert lab.settled(run, seconds=300).status == "success"
        assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)
        assert sender.seen.worst(MINUTE) <= 120
