"""A worker killed at any moment: nothing is lost, nothing is doubled, the run ends by itself (SPEC R7, R8)."""

import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab, Sender

LATENCY: Mapping[str, Any] = {"latency_ms": 150, "jitter_ms": 150}
SLOW = {"per_minute": 240}
PER_KILL = 12  # targets of each account for every kill, so that there is work left at the last one


def kill_at_random(lab: Lab, senders: list[Sender], *, kills: int, seed: int) -> None:
    """Kill one of two workers in the middle of sending, now and then both, after any number of messages."""
    dice = random.Random(seed)
    for number in range(1, kills + 1):
        lab.want_workers(2)
        lab.asked(senders, dice.randint(1, 12))
        time.sleep(dice.random() * 0.5)
        if number % 3 == 0:
            lab.kill_workers()
        else:
            lab.kill(dice.choice(lab.workers))
    lab.want_workers(2)


def kill_and_settle(lab: Lab, *, kills: int, seed: int) -> None:
    safe = [lab.add_account(limits=SLOW, **LATENCY) for _ in range(2)]
    doubtful = [lab.add_account(limits=SLOW, idempotent=False, **LATENCY) for _ in range(2)]
    senders = safe + doubtful
    runs = {sender.id: lab.operator.fire(sender.id, targets=kills * PER_KILL) for sender in senders}

    kill_at_random(lab, senders, kills=kills, seed=seed)

    for sender in safe:
        run = lab.settled(runs[sender.id])
        assert (run.status, run.sent) == ("success", run.total)
        keys = part_keys(lab.operator.targets(runs[sender.id]))
        assert sender.seen.arrivals() == dict.fromkeys(keys, 1)
    unconfirmed = 0
    for sender in doubtful:
        run = lab.settled(runs[sender.id])
        unconfirmed += run.unconfirmed
        arrived = sender.seen.arrivals()
        assert max(arrived.values()) == 1
        assert run.sent + run.unconfirmed == run.total
        targets = lab.operator.targets(runs[sender.id])
        assert all(f"{target.key}-0" in arrived for target in targets if target.status == "sent")
    assert unconfirmed > 0, "no kill hit a message in the air, so this proved nothing"


def test_a_worker_killed_again_and_again_loses_nothing_and_sends_nothing_twice(lab: Lab) -> None:
    kill_and_settle(lab, kills=5, seed=1)


@pytest.mark.soak
def test_twenty_kills_lose_nothing_and_double_nothing(lab: Lab) -> None:
    kill_and_settle(lab, kills=20, seed=2)
