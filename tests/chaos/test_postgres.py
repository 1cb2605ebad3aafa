"""PostgreSQL goes down without a word mid-run and comes back: nothing is lost, doubled or rushed (R8, P8)."""

import time

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab

WORST_SECOND = 6  # 300 per minute are 200 ms apart, up to 12 % less
PACE = {"per_minute": 300}


def crash(lab: Lab, *, away: float) -> None:
    lab.servers.crash_postgres()
    time.sleep(away)
    lab.servers.postgres.start()


def crash_mid_run(lab: Lab, *, targets: int, crashes: int) -> None:
    lab.want_workers(1)
    safe = lab.add_account(limits=PACE, latency_ms=150)
    doubtful = lab.add_account(limits=PACE, idempotent=False, latency_ms=150)
    runs = {sender.id: lab.operator.fire(sender.id, targets=targets) for sender in (safe, doubtful)}
    for number in range(1, crashes + 1):
        lab.delivered(safe, number * targets // (crashes + 1))
        crash(lab, away=number % 3)

    assert lab.settled(runs[safe.id]).status == "success"
    assert safe.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(runs[safe.id])), 1)
    run = lab.settled(runs[doubtful.id])
    assert run.sent + run.unconfirmed == run.total
    assert max(doubtful.seen.arrivals().values()) == 1
    for sender in (safe, doubtful):
        assert sender.seen.worst(MINUTE) <= PACE["per_minute"]


def test_a_postgresql_that_crashes_mid_run_costs_nothing(lab: Lab) -> None:
    crash_mid_run(lab, targets=30, crashes=2)


def test_what_an_outage_held_up_is_not_made_up_for_by_a_burst(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, latency_ms=20)
    run = lab.operator.fire(sender.id, targets=25)
    lab.delivered(sender, 5)

    crash(lab, away=3)

    assert lab.settled(run).status == "success"
    assert sender.seen.worst(1000) <= WORST_SECOND


@pytest.mark.soak
def test_a_postgresql_that_crashes_ten_times_costs_nothing(lab: Lab) -> None:
    crash_mid_run(lab, targets=400, crashes=10)
