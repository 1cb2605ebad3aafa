"""100,000 events to a slow receiver, while a run goes on and workers are killed: pace, losses, order and memory.

A minute is two seconds long here, as in `pace`. The run is on one worker; the other one is killed again and again.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
from django.db import connection
from django.utils import timezone

from accounts.models import Delivery, User, Webhook
from accounts.models.webhook import EventType
from accounts.outbox import KEPT_TRYING
from benchmarks.receivers.hooks import slow_receiver
from benchmarks.rig import Rig, rig
from sandbox.witness import times, worst_window

PER_MINUTE, MINUTE = 40, 2.0  # messages, seconds
OWNERS, EACH = 4, 2  # owners, and webhooks of each
SEQUENCES = 50  # of each webhook
QUIET = 40.0  # seconds in which the run goes on without events
LEAST_SHARE = 0.97  # of the rate without events
MOST_GROWTH = 0.15  # of the memory of the worker that lives

FILL = """
INSERT INTO accounts_delivery (webhook_id, key, type, sequence, payload, created_at, give_up_at, state, attempts,
                               next_try_at, answer)
SELECT w.id, gen_random_uuid(), 'run.finished', 'run:' || n %% %(sequences)s,
       jsonb_build_object('type', 'run.finished', 'timestamp', %(now)s::text, 'data', jsonb_build_object(
           'sequence', w.id || '-' || n %% %(sequences)s, 'number', n, 'padding', repeat('x', 800))),
       %(now)s, %(give_up)s, 'pending', 0, %(now)s, ''
FROM generate_series(1, %(each)s) n CROSS JOIN unnest(%(webhooks)s::bigint[]) AS w(id) ORDER BY n
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The events that the receiver took."""

    events: int
    repeated: int
    out_of_order: int


def main(argv: Sequence[str]) -> dict[str, object]:
    options = _options(argv)
    with rig("hooks", MINUTE_SECONDS=str(MINUTE)) as bench:
        file = bench.folder / "told.log"
        file.touch()
        with slow_receiver(file, milliseconds=options.slow) as address:
            _fire(bench, targets=options.targets)
            time.sleep(QUIET)
            started = time.time()
            events = _fill(address, options.events)
            growth = _deliver(bench, events, kills=options.kills, within=options.within)
            ended = time.time()
        told, sent = _told(file), [at / 1000 for at in chain.from_iterable(times(bench.log).values())]
    spent = ended - started
    before, use = _use(sent, started - QUIET / 2, started), _use(sent, started, ended)
    worst = worst_window([int(at * 1000) for at in sent], int(MINUTE * 1000))
    print(f"{told.events:,} of {events:,} events in {spent:.0f} s, {events / spent:.0f} per second")
    print(f"told twice {told.repeated}, out of order {told.out_of_order}, lost {events - told.events}")
    print(
        f"use of the allowed rate {use:.2%}, before the events {before:.2%}; worst window {worst} of {PER_MINUTE}"
    )
    print(f"memory of the worker that lives {growth:+.1%}")
    return {
        "ok": told.events == events
        and not told.out_of_order
        and use >= LEAST_SHARE * before
        and worst <= PER_MINUTE
        and growth < MOST_GROWTH,
        "events": events,
        "lost": events - told.events,
        "repeated": told.repeated,
        "out_of_order": told.out_of_order,
        "per_second": round(events / spent),
        "use": round(use, 4),
        "use_before": round(before, 4),
        "worst_window": worst,
        "memory_growth": round(growth, 3),
    }


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hooks", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--slow", type=int, default=50, help="milliseconds of each answer")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--targets", type=int, default=40_000, help="enough for the run to go on meanwhile")
    parser.add_argument("--within", type=float, default=3_600)
    return parser.parse_args(argv)


def _use(sent: Sequence[float], since: float, until: float) -> float:
    """Return the share of the allowed rate that was used between two moments."""
    return sum(since <= at < until for at in sent) / ((until - since) * PER_MINUTE / MINUTE)


def _fill(address: str, events: int) -> int:
    """Write the events of the outbox; return how many there are."""
    secrets = {"current": f"whsec_{'QUJD' * 8}", "previous": ""}
    owners = [User.objects.create(username=f"hooked{number}") for number in range(OWNERS)]
    webhooks = [
        Webhook.objects.create(
            owner=owner, url=f"{address}/{owner}-{number}", events=EventType.values, secrets=secrets
        )
        for owner in owners
        for number in range(EACH)
    ]
    each, now = events // len(webhooks), timezone.now()
    with connection.cursor() as cursor:
        values: dict[str, Any] = {
            "sequences": SEQUENCES,
            "now": now,
            "give_up": now + KEPT_TRYING,
            "each": each,
            "webhooks": [webhook.pk for webhook in webhooks],
        }
        cursor.execute(FILL, values)
        cursor.execute("ANALYZE accounts_delivery")
    return each * len(webhooks)


def _fire(bench: Rig, *, targets: int) -> None:
    """Let a run go on, on the first of two workers, and start both."""
    accounts = bench.accounts(2, per_minute=PER_MINUTE, concurrency=3)
    bench.recipients(targets)
    served = next(account for account in accounts if account.pk % 2 == 0)  # the share of the first worker
    reminder = bench.reminder([served], first=0, count=targets)
    bench.start_workers(2, threads=8)
    bench.fire(reminder)


def _deliver(bench: Rig, events: int, *, kills: int, within: float) -> float:
    """Wait until all are delivered, killing the second worker meanwhile; return how much the first one grew."""
    first, deadline, grown_from = psutil.Process(bench.processes[0].pid), time.monotonic() + within, 0.0
    while left := Delivery.objects.filter(state=Delivery.State.PENDING).count():
        done = 1 - left / events
        if not grown_from and done > 0.2:
            grown_from = _memory(first)
        if kills and done > 0.8 - 0.2 * kills:
            _restart_second(bench)
            kills -= 1
        if time.monotonic() > deadline:
            raise RuntimeError(f"{left:,} events were not delivered: see {bench.folder}.")
        time.sleep(1)
    return _memory(first) / (grown_from or _memory(first)) - 1


def _restart_second(bench: Rig) -> None:
    killed = bench.processes[1]
    command = [str(each) for each in killed.args]  # type: ignore[union-attr]  # a list was given
    killed.kill()
    killed.wait()
    time.sleep(2)
    bench.start(Path(command[0]).name, *command[1:], ACCOUNT_SHARE="2/2", WORKER_THREADS="8")
    bench.processes[1] = bench.processes.pop()


def _memory(process: psutil.Process) -> float:
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += each.memory_info().rss
    return total


def _told(file: Path) -> Told:
    known: dict[str, dict[int, None]] = defaultdict(dict)
    repeated = 0
    for line in file.read_text().splitlines():
        path, sequence, number = line.split()
        seen = known[f"{path} {sequence}"]
        repeated += int(number) in seen
        seen[int(number)] = None
    strange = sum(list(seen) != sorted(seen) for seen in known.values())
    return Told(events=sum(map(len, known.values())), repeated=repeated, out_of_order=strange)
