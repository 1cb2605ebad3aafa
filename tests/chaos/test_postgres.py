"""PostgreSQL goes down without a word mid-run and comes back: nothing is lost, doubled or rushed (R8, P8)."""

import time

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab

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


def test_nothing_leaves_after_a_window_that_closed_while_postgresql_was_away(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE)
    run = lab.operator.fire(sender.id, targets=100)
    lab.delivered(sender, 3)
    closes = lab.operator.close_window(run, seconds=4)

    crash(lab, away=4)

    lab.until(lambda: lab.operator.run(run).status == "paused", "the run pauses")
    assert max(line["at"] for line in sender.seen.received()) < closes


@pytest.mark.soak
def test_a_postgresql_that_crashes_ten_times_costs_nothing(lab: Lab) -> None:
    crash_mid_run(lab, targets=400, crashes=10)
