"""The window closes while a run is going, or while something stands still: W3, W5 and R4 with real processes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab, Sender

TARGETS = 32


def test_nothing_leaves_after_the_window_has_closed_and_resume_finishes_the_run(lab: Lab) -> None:
    lab.want_workers(2)
    sender = lab.add_account(limits={"per_minute": 300}, latency_ms=100)
    run = lab.operator.fire(sender.id, targets=TARGETS)
    lab.delivered(sender, 3)

    closes = lab.operator.close_window(run, seconds=5)

    lab.until(lambda: lab.operator.run(run).status == "paused", "the run pauses")
    paused = lab.operator.run(run)
    lines = sender.seen.received()
    assert max(line["at"] for line in lines) < closes
    assert paused.pause_reason == "window_closed"
    assert (paused.sent, paused.pending) == (len(lines), TARGETS - len(lines))
    assert 3 <= paused.sent < TARGETS
    assert "closed at 12:00" in paused.summary
    assert f"{paused.sent} of {TARGETS} groups delivered, {paused.pending} still pending" in paused.summary

    lab.operator.open_window(run)
    lab.operator.resume(run)
    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


# Something stands still over the end.


@contextmanager
def frozen_workers(lab: Lab) -> Iterator[None]:
    for worker in lab.workers:
        worker.freeze()
    try:
        yield
    finally:
        for worker in lab.workers:
            worker.thaw()


STILL: dict[str, Callable[[Lab], AbstractContextManager[None]]] = {
    "the workers": frozen_workers,
    "PostgreSQL": lambda lab: lab.servers.frozen_postgres(),
}


def stand_still(lab: Lab, what: str, senders: Sequence[Sender], *, before: float, after: float) -> list[int]:
    """Let `what` stand still from `before` the end of the window until `after` it; answers with the runs."""
    runs = [lab.operator.fire(sender.id, targets=400) for sender in senders]
    for sender in senders:
        lab.delivered(sender, 3)
    closes = max(lab.operator.close_window(run, seconds=5) for run in runs)
    time.sleep(max(0.0, closes / 1000 - time.time() - before))
    with ExitStack() as stack:
        stack.enter_context(STILL[what](lab))
        time.sleep(max(0.0, closes / 1000 - time.time() + after))
    for run in runs:
        lab.until(lambda run=run: lab.operator.run(run).status == "paused", "the run pauses")  # type: ignore[misc]
    for sender in senders:
        assert max(line["at"] for line in sender.seen.received()) < closes
        assert max(sender.seen.arrivals().values()) == 1
    return runs


@pytest.mark.parametrize("what", STILL)
@pytest.mark.parametrize("before", [2.4, 2.2])  # the guard is 2 s: leave was given before the stall
def test_nothing_leaves_after_the_end_over_which_something_stood_still(
    lab: Lab, what: str, before: float
) -> None:
    lab.want_workers(2)
    senders = [
        lab.add_account(idempotent=False, limits={"per_minute": 3000}, latency_ms=30) for _ in range(8)
    ]
    # In all shorter than a lease: after a longer one everything is looked at anew anyway.
    for run in stand_still(lab, what, senders, before=before, after=0.4):
        lab.operator.cancel(run)


def test_a_slow_number_check_lets_nothing_leave_after_the_end(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(idempotent=False, limits={"per_minute": 600}, latency_ms=1500)
    run = lab.operator.fire(sender.id, targets=60, people=True)
    lab.delivered(sender, 1)
    closes = lab.operator.close_window(run, seconds=5)
    lab.until(lambda: lab.operator.run(run).status == "paused", "the run pauses")
    assert max(line["at"] for line in sender.seen.received()) < closes
    lab.operator.cancel(run)


@pytest.mark.soak
def test_nothing_leaves_after_any_of_many_ends(lab: Lab) -> None:
    lab.want_workers(2)
    for number in range(12):
        senders = [
            lab.add_account(idempotent=False, limits={"per_minute": 1200}, latency_ms=50) for _ in range(8)
        ]
        what = list(STILL)[number % len(STILL)]
        before = 2.05 + number * 0.05
        for run in stand_still(lab, what, senders, before=before, after=0.2 + number % 3):
            lab.operator.cancel(run)
