"""1,000 accounts paced side by side at 40 per minute for two minutes, all processes included."""

import time
from collections.abc import Sequence

from benchmarks.rig import rig
from sandbox.witness import times, worst_window

ACCOUNTS = 1000
PER_MINUTE = 40
MINUTES = 2
MINUTE_MS = 60_000


def main(argv: Sequence[str]) -> dict[str, object]:
    accounts = int(argv[0]) if argv else ACCOUNTS
    workers = int(argv[1]) if len(argv) > 1 else 2
    minutes = int(argv[2]) if len(argv) > 2 else MINUTES
    each = PER_MINUTE * (minutes + 2)
    with rig("accounts") as bench:
        made = bench.accounts(accounts, per_minute=PER_MINUTE, concurrency=3)
        bench.recipients(each)
        bench.start_workers(workers, threads=accounts // workers + 20)
        for account in made:
            bench.fire(bench.reminder([account], first=0, count=each))
        start = time.time() * 1000 + 5000  # counted when all are under way
        before = _at(start, bench.use)
        after = _at(start + minutes * MINUTE_MS, bench.use)
        received = times(bench.log)
    sent = sum(
        1 for moments in received.values() for at in moments if start <= at < start + minutes * MINUTE_MS
    )
    use = sent / (accounts * PER_MINUTE * minutes)
    over = sum(1 for moments in received.values() if worst_window(moments, MINUTE_MS) > PER_MINUTE)
    cpu = after.cpu - before.cpu
    print(f"{accounts} accounts, {workers} workers, {minutes} minutes: {sent} messages")
    print(f"use of the budget   {use:8.2%}")
    print(f"accounts over       {over:5d}")
    print(f"CPU                 {cpu:8.1f} s, {cpu * 1000 / max(sent, 1):.2f} ms per message")
    print(f"memory              {after.rss_mb:8.0f} MB")
    return {
        "accounts": accounts,
        "use": round(use, 4),
        "over_limit": over,
        "cpu_seconds": round(cpu, 1),
        "rss_mb": round(after.rss_mb),
        "ok": over == 0,
    }


def _at(moment_ms: float, look):  # type: ignore[no-untyped-def]
    time.sleep(max(0.0, moment_ms / 1000 - time.time()))
    return look()
