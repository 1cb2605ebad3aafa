"""The details of old runs are removed while others send: how long it takes, and how long anybody waits for it."""

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import quantiles

from django.db import connection

from activity.pruning import prune
from benchmarks.tables import crowd, scratch
from delivery.models import Run

ROWS = 1_000_000
DAYS = 90
EVERY = 0.01  # seconds between two probes

# What ended goes back by 200 days, with its ledger and its notifications; what is open stays where it is.
AGE = """
UPDATE delivery_run SET finished_at = now() - interval '200 days', fired_at = fired_at - interval '200 days'
WHERE status IN ('success', 'partial', 'failed');
UPDATE activity_attempt SET at = at - interval '200 days' WHERE id % 10 < 9;
UPDATE activity_notification SET created_at = created_at - interval '200 days';
"""
# What sending does, to rows of its own: count a day, begin a target, record it.
PROBE = (
    """SELECT count(*) FROM activity_attempt
       WHERE account_id = 3 AND action = 'message' AND at > now() - interval '1 day'""",
    "UPDATE delivery_runtarget SET error = '' WHERE id = %(target)s",
    """INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt, outcome,
                                     provider_id, error, took_ms)
       VALUES (now(), 1, 3, 1, %(target)s, 'message', 0, 1, 'sent', '', '', 1)""",
    "UPDATE delivery_run SET summary = '' WHERE id = 1",
)


@dataclass(slots=True)
class Waits:
    """The milliseconds that each probe took."""

    ms: list[float] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.ms)

    @property
    def p99(self) -> float:
        return quantiles(self.ms, n=100)[-1]


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks prune", description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS, help="Targets, and as many ledger rows.")
    rows = parser.parse_args(argv).rows
    with scratch.database("prune"):
        crowd.fill(crowd.Size(targets=rows, attempts=rows))
        with connection.cursor() as cursor:
            cursor.execute(AGE)
            cursor.execute("VACUUM ANALYZE")
        with _sending() as before:
            time.sleep(5)
        open_before = _targets_of_open_runs()
        with _sending() as during:
            start = time.monotonic()
            removed = prune.prune(prune.border(DAYS))
            seconds = time.monotonic() - start
        kept = _targets_of_open_runs() == open_before
        left = prune.would_remove(prune.border(DAYS))
    print("| removed | rows |\n|---|---:|")
    for kind, number in removed.items():
        print(f"| {kind} | {number:,} |")
    print(f"| together, in {seconds:.1f} s | {removed.total():,} |")
    print("\n| a sender's statements | p99 ms | longest ms |\n|---|---:|---:|")
    print(f"| without pruning | {before.p99:.1f} | {before.worst:.1f} |")
    print(f"| while it prunes | {during.p99:.1f} | {during.worst:.1f} |")
    return {
        "rows": removed.total(),
        "seconds": round(seconds, 1),
        "blocked_ms": round(during.worst, 1),
        "blocked_p99_ms": round(during.p99, 1),
        "quiet_ms": round(before.worst, 1),
        "ok": kept and not any(left.values()),
    }


def _targets_of_open_runs() -> int:
    return sum(run.targets.count() for run in Run.objects.open()[:50])


@contextmanager
def _sending() -> Iterator[Waits]:
    """Do what sending does, again and again, in a thread of its own; note how long each statement took."""
    waits, ended = Waits(), threading.Event()
    target = Run.objects.get(pk=1).targets.filter(status="pending").values_list("pk", flat=True)[0]

    def send() -> None:
        with connection.cursor() as cursor:
            while not ended.wait(EVERY):
                for statement in PROBE:
                    start = time.perf_counter()
                    cursor.execute(statement, {"target": target})
                    waits.ms.append((time.perf_counter() - start) * 1000)
        connection.close()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield waits
    finally:
        ended.set()
        sender.join()
