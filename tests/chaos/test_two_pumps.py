"""Redis loses its leases while there is more to do: the old pump of an account and its new one, in one process.

The old one does not know yet that it lost its account. Nothing may leave twice, and no limit may be crossed (R7, P3).
"""

import time

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab, Sender

PER_MINUTE = 120


def rage(lab: Lab, *, accounts: int, rounds: int, seconds: float) -> None:
    """Flush Redis again and again, fire more and wake up all accounts; then look at what arrived."""
    lab.want_workers(1)
    senders = [
        lab.add_account(idempotent=False, limits={"per_minute": PER_MINUTE}, latency_ms=150, jitter_ms=200)
        for _ in range(accounts)
    ]
    runs: list[tuple[Sender, int]] = []
    for _ in range(rounds):
        with lab.redis() as redis:
            redis.flushall()
        for sender in senders:
            runs.append((sender, lab.operator.fire(sender.id, targets=12)))
            lab.operator.send_pumps(sender.id, times=2)
        time.sleep(seconds)
    for sender, run in runs:
        found = lab.settled(run, seconds=600)
        assert found.sent + found.unconfirmed == found.total
        sent = [each for each in lab.operator.targets(run) if each.status == "sent"]
        assert set(part_keys(sent)) <= set(sender.seen.arrivals())
    for sender in senders:
        assert max(sender.seen.arrivals().values()) == 1
        assert sender.seen.worst(MINUTE) <= PER_MINUTE


def test_nothing_is_doubled_when_redis_forgets_and_another_reminder_is_fired(lab: Lab) -> None:
    rage(lab, accounts=6, rounds=4, seconds=2.5)


@pytest.mark.soak
def test_nothing_is_doubled_when_redis_forgets_for_minutes(lab: Lab) -> None:
    rage(lab, accounts=20, rounds=25, seconds=6)
