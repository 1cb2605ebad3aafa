"""A Redis with older data comes back, in the middle of a run and again: no limit is crossed (P8)."""

import random
import time

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab
from tests.chaos.partition import HOUR_MS, Partition, partition

PER_HOUR = 20
LIMITS = {"per_minute": 3000, "per_hour": PER_HOUR, "gap_min": 0.05, "gap_max": 0.05}


def test_an_older_redis_that_comes_back_crosses_no_limit(lab: Lab) -> None:
    """A proxy leads to a backup that is a little older, and back to the first server, which is older by then."""
    with partition(lab) as parts:
        parts.start()
        sender = lab.add_account(limits=LIMITS, latency_ms=20)
        run = lab.operator.fire(sender.id, targets=3 * PER_HOUR)
        lab.delivered(sender, 5)
        older = parts.copy(parts.first)
        lab.delivered(sender, 15)
        parts.lead_all_to(older)
        parts.waits_for(sender, "per_hour")
        lab.delivered(sender, PER_HOUR + 5)
        parts.lead_all_to(parts.first)
        parts.waits_for(sender, "per_hour")
        assert lab.settled(run, seconds=180).status == "success"
        assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)
        assert sender.seen.worst(HOUR_MS) <= PER_HOUR


def test_two_halves_that_speak_to_different_servers_share_one_limit(lab: Lab) -> None:
    """A partition: half of the workers still have the old Redis. Both think that they serve the account."""
    with partition(lab) as parts:
        near, far = parts.start(), parts.start()
        senders = [lab.add_account(limits=LIMITS, latency_ms=20, idempotent=keys) for keys in (True, False)]
        runs = [lab.operator.fire(sender.id, targets=2 * PER_HOUR) for sender in senders]
        for sender in senders:
            lab.delivered(sender, 5)
        other = parts.copy(parts.first)
        far.lead_to(other)
        time.sleep(6)
        near.lead_to(other)
        time.sleep(6)
        parts.lead_all_to(parts.first)
        for sender, run in zip(senders, runs, strict=True):
            lab.settled(run, seconds=180)
            assert set(sender.seen.arrivals().values()) == {1}, "nothing arrives twice"
            assert sender.seen.worst(HOUR_MS) <= PER_HOUR


@pytest.mark.soak
def test_no_hour_is_over_its_limit_while_servers_change_again_and_again(lab: Lab) -> None:
    rng = random.Random(11)
    with partition(lab) as parts:
        for _ in range(2):
            parts.start()
        senders = [lab.add_account(limits=LIMITS, latency_ms=20) for _ in range(4)]
        runs = [lab.operator.fire(sender.id, targets=10 * PER_HOUR) for sender in senders]
        for _ in range(40):
            time.sleep(rng.uniform(2, 8))
            _change(parts, rng)
        parts.lead_all_to(parts.first)
        for sender, run in zip(senders, runs, strict=True):
            assert lab.settled(run, seconds=600).status == "success"
            assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)
            assert sender.seen.worst(HOUR_MS) <= PER_HOUR


def _change(parts: Partition, rng: random.Random) -> None:
    """One more copy now and then, and some of the switches lead elsewhere."""
    if len(parts.servers) < 6 and rng.random() < 0.5:
        parts.copy(rng.choice(parts.servers))
    server = rng.choice(parts.servers)
    for switch in parts.switches:
        if rng.random() < 0.7:
            switch.lead_to(server)
