"""Targets per second without pacing, each recorded, compared with pg-boss, BullMQ and others in the same run."""

import argparse
import time
from collections.abc import Sequence

from django.db import connection

from benchmarks.peers.run import Peers
from benchmarks.receivers.sink import NGINX, RECEIVERS, SANDBOX, Sink, nginx_program, sink
from benchmarks.rig import Rig, Use, rig
from config.redis.address import redis_address
from delivery.models import Run

TARGETS = 20_000
ACCOUNTS = 8
UNPACED = 100_000_000  # per minute
IN_FLIGHT = 64
PGBOSS = "pgboss_per_second"


def main(argv: Sequence[str]) -> dict[str, object]:
    options = _options(argv)
    targets: int = options.targets
    print(f"Receiver: {options.receiver}. Compare the figures only with those of the same receiver.")
    with (
        rig("throughput", MAX_PER_MINUTE="100000") as bench,
        sink(options.receiver, bench.folder) as receiver,
    ):
        celery = _celery_per_target(bench, receiver, targets // 10)
        peers = Peers(bench, receiver.url, targets).measured() if options.peers else {}
        ours, cpu = _paceline(bench, receiver, targets)
        received = receiver.received()
    twice = sum(1 for count in received.values() if count > 1)
    ratio = ours / celery
    print(f"to {receiver.name}, {targets} targets over {ACCOUNTS} accounts")
    print(
        f"Paceline                {ours:8.0f} per second, {cpu * 1000 / targets:.2f} ms CPU each, all included"
    )
    print(f"a Celery task each      {celery:8.0f} per second")
    print(f"ratio                   {ratio:8.1f}")
    for name, rate in peers.items():
        print(f"{name:<24}{rate:8.0f}, ratio {ours / rate:.2f}")
    return {
        **{name: round(rate) for name, rate in peers.items()},
        **({"ratio_pgboss": round(ours / peers[PGBOSS], 2)} if PGBOSS in peers else {}),
        "receiver": receiver.name,
        "per_second": round(ours),
        "celery_per_second": round(celery),
        "ratio": round(ratio, 1),
        "doubled": twice,
        "ok": twice == 0 and len(received) == targets * (1 + len(peers)) + targets // 10,
    }


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks throughput", description=__doc__)
    parser.add_argument("targets", type=int, nargs="?", default=TARGETS)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--receiver",
        choices=RECEIVERS,
        default=NGINX if nginx_program() else SANDBOX,
        help="nginx where it is installed; with the sandbox the figure is lower, down to half of it",
    )
    return parser.parse_args(argv)


def _paceline(bench: Rig, receiver: Sink, targets: int) -> tuple[float, float]:
    """Return the targets per second, and the CPU time of all processes meanwhile."""
    accounts = bench.accounts(ACCOUNTS, per_minute=UNPACED, concurrency=IN_FLIGHT, gateway=receiver.url)
    bench.recipients(targets)
    each = targets // ACCOUNTS
    reminders = [
        bench.reminder([account], first=number * each, count=each) for number, account in enumerate(accounts)
    ]
    bench.start_workers(2, threads=ACCOUNTS)
    before, start = bench.use(receiver.pid), time.time()
    for reminder in reminders:
        bench.fire(reminder)
    bench.wait_until_settled(within=600)
    after = bench.use(receiver.pid)
    _explain(before, after, targets)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXTRACT(EPOCH FROM max(settled_at)) FROM delivery_runtarget WHERE status = 'sent'"
        )
        end = float(cursor.fetchone()[0])
    assert Run.objects.filter(status="success").count() == ACCOUNTS
    return targets / (end - start), after.cpu - before.cpu


def _explain(before: Use, after: Use, targets: int) -> None:
    for name in after.by_program:
        spent = after.by_program[name] - before.by_program.get(name, 0.0)
        print(f"  {name:<20} {spent * 1000 / targets:8.3f} ms CPU per target")


def _celery_per_target(bench: Rig, receiver: Sink, targets: int) -> float:
    """Return the targets per second on the same servers and gateway, before Paceline's workers start."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE TABLE per_target (id bigint PRIMARY KEY, account text, address text, body text,
                                     status text DEFAULT 'pending', sent_at timestamptz);
            """
        )
        cursor.execute(
            "INSERT INTO per_target SELECT n, 'c' || n %% 8, n || '@g.us', 'Hello' FROM generate_series(1, %s) n",
            [targets],
        )
    environment = {
        "BROKER_URL": redis_address(bench.environment["REDIS_URL"]).broker,
        "PLAIN_DATABASE": bench.environment["DATABASE_URL"],
        "SINK": receiver.url,
    }
    bench.start(
        "celery", "-A", "benchmarks.peers.celery_per_target", "worker", "--pool=prefork", "--concurrency=2",
        "--loglevel=warning", "-Q", "per-target", **environment,
    )  # fmt: skip
    return _drain_per_target(bench, targets, environment)


def _drain_per_target(bench: Rig, targets: int, environment: dict[str, str]) -> float:
    from celery import Celery  # noqa: PLC0415 - of this part only

    app = Celery("enqueue", broker=environment["BROKER_URL"])
    time.sleep(5)  # until its processes are up and idle
    start = time.time()
    for number in range(1, targets + 1):
        app.send_task("send_target", (number,), queue="per-target")
    while _unsent():
        time.sleep(0.1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXTRACT(EPOCH FROM max(sent_at)) FROM per_target")
        end = float(cursor.fetchone()[0])
    worker = bench.processes.pop()
    worker.terminate()
    worker.wait()
    return targets / (end - start)


def _unsent() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM per_target WHERE status <> 'sent' LIMIT 1")
        return cursor.fetchone() is not None
