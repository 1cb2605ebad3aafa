"""A run of 1,000,000 targets: how long it takes to make, to send its first message, and what memory it costs."""

import time
from collections.abc import Sequence

import psutil

from benchmarks.rig import Rig, rig
from delivery.models import Run
from sandbox.log import read

TARGETS = 1_000_000
SENDS = 100_000
UNPACED = 100_000_000


def main(argv: Sequence[str]) -> dict[str, object]:
    targets = int(argv[0]) if argv else TARGETS
    sends = min(SENDS, targets)
    with rig("fanout") as bench:
        accounts = bench.accounts(4, per_minute=UNPACED, concurrency=32)
        bench.recipients(targets)
        reminder = bench.reminder(accounts, first=0, count=targets)
        bench.start_workers(1, threads=8)
        start = time.time()
        run = bench.fire(reminder)
        fired = time.time()
        first = _first_message(bench) - fired
        growth = _growth(bench, run, sends)
    print(f"{run.total} targets made in      {fired - start:6.1f} s")
    print(f"first message after           {first:6.2f} s")
    print(f"worker's memory over {sends} sends grew by {growth:.1f} MB")
    return {
        "targets": run.total,
        "seconds": round(fired - start, 1),
        "first_send_seconds": round(first, 2),
        "rss_growth_mb": round(growth, 1),
        "ok": run.total == targets,
    }


def _first_message(bench: Rig) -> float:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for line in read(bench.log):
            return float(line["at"]) / 1000
        time.sleep(0.02)
    raise RuntimeError(f"No message left within a minute: see {bench.folder}.")


def _growth(bench: Rig, run: Run, sends: int) -> float:
    """Return the worker's memory after `sends`, relative to that after the first tenth of them."""
    worker = psutil.Process(bench.processes[0].pid)
    warm = 0.0
    while run.sent < sends:
        time.sleep(0.5)
        run.refresh_from_db()
        if not warm and run.sent >= sends // 10:
            warm = worker.memory_info().rss
    return float(worker.memory_info().rss - warm) / 1e6
