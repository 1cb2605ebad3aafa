"""A queue of 100,000 items from a file: how long import, claims, planning and pages take, and what memory it costs."""

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from django.core.files.base import File
from django.test import Client, override_settings

from accounts.models import Account, User
from benchmarks import memory
from benchmarks.pages import SERVED
from benchmarks.tables import scratch
from delivery.engine import claims, tick
from queues import steering
from queues.imports import stages
from queues.keep_times import keep_times
from queues.models import Item, Queue, QueueImport
from queues.runs import runs_of

ITEMS = 100_000
MOST_SECONDS = 60


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks queue", description=__doc__)
    parser.add_argument("items", type=int, nargs="?", default=ITEMS)
    items = parser.parse_args(argv).items
    with (
        scratch.database("queue"),
        TemporaryDirectory() as folder,
        override_settings(**SERVED, MEDIA_ROOT=folder),
    ):
        owner = User.objects.create(username="sender")
        queue = _queue(owner)
        with memory.peak() as peak:
            seconds = _imported(queue, owner, _file(Path(folder), items))
        claim_ms, p95_ms, tick_ms = _claims(queue), _pages(queue, owner), _tick()
        saved = Item.objects.count()
    print(f"{items} items in {seconds:.1f} s, memory +{peak.mb:.0f} MB")
    print(f"a claim takes {claim_ms:.1f} ms, a tick {tick_ms:.1f} ms, a page {p95_ms:.0f} ms (95 %)")
    return {
        "items": saved,
        "seconds": round(seconds, 1),
        "peak_mb": round(peak.mb, 1),
        "claim_ms": round(claim_ms, 2),
        "tick_ms": round(tick_ms, 2),
        "p95_ms": round(p95_ms, 1),
        "ok": saved == items and seconds < MOST_SECONDS * max(1, items / ITEMS),
    }


def _queue(owner: User) -> Queue:
    account = Account.objects.create(
        owner=owner,
        name="Main",
        channel="email",
        transport="sandbox",
        status="active",
        fence=1,
        credentials={},
    )
    settings = {
        "name": "Letters",
        "pace": "steady",
        "zone": "UTC",
        "window_start_hour": 0,
        "window_end_hour": 24,
        "subject": "",
        "text": "",
        "send_days": 127,
        "priority": 0,
    }
    return steering.create(owner, accounts=[account], by=owner, settings=settings)


def _file(folder: Path, items: int) -> Path:
    path = folder / "items.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "email", "subject", "text"))
        for n in range(items):
            writer.writerow(
                (n, f"reader-{n}@example.com", f"Subject {n}", f"Dear reader {n}, " + "hello " * 40)
            )
    return path


def _imported(queue: Queue, owner: User, path: Path) -> float:
    """Return the seconds from the upload to the last saved item, as a worker does it without the broker."""
    start = time.monotonic()
    with path.open("rb") as file:
        job = stages.upload(queue, File(file), filename=path.name, by=owner)
    for status in (QueueImport.Status.CHECKING, QueueImport.Status.SAVING):
        QueueImport.objects.filter(pk=job.pk).update(status=status)
        stages.work(job.pk)
    return time.monotonic() - start


def _claims(queue: Queue) -> float:
    run = runs_of(queue).open().get()
    account = Account.objects.get(queues=queue)

    def claim() -> None:
        claims.claim(run.pk, account.pk, fence=1, most=40, now=datetime.now(UTC))

    return statistics.median(_timed(claim, 20))


def _tick() -> float:
    """Return what beat's look at runs and the pass over planned times take together."""

    def work() -> None:
        tick.tick()
        keep_times()

    return statistics.median(_timed(work, 10))


def _pages(queue: Queue, owner: User) -> float:
    """Return the time of the slowest page: all items, those that wait, and a state that none has."""
    client = Client(headers={"host": "localhost"})
    client.force_login(owner)

    def slowest(path: str) -> float:
        def read() -> None:
            answer = client.get(path)
            if answer.status_code != 200:
                raise RuntimeError(f"The page answered {answer.status_code}.")

        read()
        return statistics.quantiles(_timed(read, 20), n=20)[-1]

    place = f"/queues/{queue.pk}/"
    return max(slowest(path) for path in (place, f"{place}?state=waiting", f"{place}?state=failed"))


def _timed(work: Callable[[], None], times: int) -> list[float]:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1000)
    return found
