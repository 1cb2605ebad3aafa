"""The start of a worker with 10,000 account queues, or as many as you say, and the cost of a pump beside them."""

import argparse
import time
from collections.abc import Sequence

from activity.heartbeats import REPORTS_KEY, WORKER_KEY
from benchmarks.rig import Rig, rig
from config.redis.client import client
from delivery.engine import wakeups

PUMPS = 500  # of accounts without work: what is left is the cost of the queues and of the lease
WITHIN = 300.0  # seconds


def main(argv: Sequence[str]) -> dict[str, object]:
    options = _options(argv)
    with rig("queues") as bench:
        ids = [account.pk for account in bench.accounts(options.accounts, per_minute=40, concurrency=3)]
        started = time.monotonic()
        bench.start(
            "celery", "-A", "config", "worker", "--pool=threads", "--concurrency=64", "--loglevel=warning",
            "--without-gossip", "--without-mingle", "--hostname=worker@bench", ACCOUNT_SHARE=f"1/{options.shares}",
        )  # fmt: skip
        takes_tasks = _until_written(REPORTS_KEY) - started
        serves = _until_written(WORKER_KEY) - started
        own = [account for account in ids if account % options.shares == 0][:PUMPS]
        ms_per_pump = _pumped(bench, own)
    print(f"{options.accounts} accounts, share 1/{options.shares}")
    print(f"takes common tasks after   {takes_tasks:8.1f} s")
    print(f"serves all accounts after  {serves:8.1f} s")
    print(f"CPU of a pump              {ms_per_pump:8.2f} ms")
    return {
        "accounts": options.accounts,
        "shares": options.shares,
        "common_seconds": round(takes_tasks, 1),
        "all_seconds": round(serves, 1),
        "ms_per_pump": round(ms_per_pump, 2),
    }


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks queues", description=__doc__)
    parser.add_argument("accounts", type=int, nargs="?", default=10_000)
    parser.add_argument("shares", type=int, nargs="?", default=1)
    return parser.parse_args(argv)


def _until_written(key: str) -> float:
    deadline = time.monotonic() + WITHIN
    while not client().exists(key):
        if time.monotonic() > deadline:
            raise RuntimeError("The worker did not start.")
        time.sleep(0.02)
    return time.monotonic()


def _pumped(bench: Rig, accounts: Sequence[int]) -> float:
    """Return the CPU time per pump, in milliseconds, of the worker and the servers together."""
    time.sleep(5)  # until it is idle
    before = bench.use()
    wakeups.wake(accounts)
    deadline = time.monotonic() + WITHIN
    while any(client().llen(f"paceline:queue:{wakeups.queue_name(account)}") for account in accounts):
        if time.monotonic() > deadline:
            raise RuntimeError("The pumps were not taken.")
        time.sleep(0.2)
    time.sleep(2)  # until the last ones are done
    return (bench.use().own - before.own) * 1000 / len(accounts)
