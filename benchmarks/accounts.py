"""Accounts paced side by side at 40 per minute for two minutes, 1,000 or as many as you say; all processes included."""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.receivers.sink import NGINX, RECEIVERS, SANDBOX, nginx_program, sink
from benchmarks.rig import Use, rig
from sandbox.witness import worst_window

PER_MINUTE = 40
MINUTE_MS = 60_000
SETTLED_MS = 15_000  # from the last firing until all accounts are under way


def main(argv: Sequence[str]) -> dict[str, object]:
    options = _options(argv)
    accounts, workers, minutes = options.accounts, options.workers, options.minutes
    each = PER_MINUTE * (minutes + 2) + accounts // 25  # firing takes a while; all work until the end
    with rig("accounts") as bench, sink(options.receiver, bench.folder) as receiver:
        made = bench.accounts(accounts, per_minute=PER_MINUTE, concurrency=3, gateway=receiver.url)
        bench.recipients(each)
        reminders = [bench.reminder([account], first=0, count=each) for account in made]
        bench.start_workers(workers, threads=accounts // workers + 20)
        for reminder in reminders:
            bench.fire(reminder)
        start = time.time() * 1000 + SETTLED_MS
        end = start + minutes * MINUTE_MS
        before = _at(start, partial(bench.use, receiver.pid))
        after = _at(end, partial(bench.use, receiver.pid))
        received = receiver.times()
    sent = sum(1 for moments in received.values() for at in moments if start <= at < end)
    use = sent / (accounts * PER_MINUTE * minutes)
    over = sum(1 for moments in received.values() if worst_window(moments, MINUTE_MS) > PER_MINUTE)
    ms_per_message = (after.own - before.own) * 1000 / max(sent, 1)
    print(f"{accounts} accounts, {workers} workers, {minutes} minutes, to {receiver.name}: {sent} messages")
    print(f"use of the budget   {use:8.2%}")
    print(f"accounts over       {over:5d}")
    print(f"CPU                 {after.own - before.own:8.1f} s, {ms_per_message:.3f} ms per message")
    for name in sorted(after.by_program):
        spent = after.by_program[name] - before.by_program.get(name, 0.0)
        print(f"  {name:<18}{spent:8.1f} s, {spent * 1000 / max(sent, 1):.3f} ms per message")
    print(f"memory              {after.rss_mb:8.0f} MB")
    return {
        "accounts": accounts,
        "receiver": receiver.name,
        "use": round(use, 4),
        "over_limit": over,
        "cpu_seconds": round(after.own - before.own, 1),
        "ms_per_message": round(ms_per_message, 3),
        "rss_mb": round(after.rss_mb),
        "ok": over == 0,
    }


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks accounts", description=__doc__)
    parser.add_argument("accounts", type=int, nargs="?", default=1000)
    parser.add_argument("workers", type=int, nargs="?", default=2)
    parser.add_argument("minutes", type=int, nargs="?", default=2)
    parser.add_argument("--receiver", choices=RECEIVERS, default=NGINX if nginx_program() else SANDBOX)
    return parser.parse_args(argv)


def _at(moment_ms: float, look: Callable[[], Use]) -> Use:
    time.sleep(max(0.0, moment_ms / 1000 - time.time()))
    return look()
