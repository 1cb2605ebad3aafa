"""The share of its allowed rate that one account uses over a run of 1,000 targets, and whether it ever exceeds it.

A minute is two seconds long here, so 40 per minute are 20 per second and the run crosses 25 minutes. All numbers are
read from the receiver's own log.
"""

from collections.abc import Sequence

from benchmarks.rig import rig
from sandbox.witness import times, worst_window

TARGETS = 1000
PER_MINUTE = 40
MINUTE = 2.0  # seconds


def main(argv: Sequence[str]) -> dict[str, object]:
    targets = int(argv[0]) if argv else TARGETS
    with rig("pace", MINUTE_SECONDS=str(MINUTE)) as bench:
        account = bench.accounts(1, per_minute=PER_MINUTE, concurrency=3)
        bench.recipients(targets)
        reminder = bench.reminder(account, first=0, count=targets)
        bench.start_workers(1, threads=4)
        bench.fire(reminder)
        bench.wait_until_settled(within=targets * MINUTE / PER_MINUTE * 2 + 60)
        received = times(bench.log)["a0"]
    span = (max(received) - min(received)) / 1000
    use = (len(received) - 1) / (span * PER_MINUTE / MINUTE)
    worst = worst_window(received, int(MINUTE * 1000))
    over = sum(
        1
        for end in received
        if worst_window([t for t in received if end - MINUTE * 1000 < t <= end], 10**9) > PER_MINUTE
    )
    print(f"{len(received)} messages in {span:.1f} s at {PER_MINUTE} per {MINUTE:g} s")
    print(f"use of the allowed rate  {use:8.2%}")
    print(f"worst sliding window     {worst:5d} of {PER_MINUTE}")
    return {
        "use": round(use, 4),
        "over_limit": over,
        "worst_window": worst,
        "targets": len(received),
        "ok": over == 0 and len(received) == targets,
    }
