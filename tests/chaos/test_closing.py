"""The window closes while a run is going: W3, W5 and R4 with real processes."""

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab

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
