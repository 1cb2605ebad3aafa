"""A file of 100,000 recipients: how long its check and its saving take, and what memory they cost."""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from django.core.files.base import File
from django.test import override_settings

from accounts.imports import stages
from accounts.models import Import, Recipient, User
from benchmarks import memory
from benchmarks.tables import scratch

ROWS = 100_000


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks import", description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    rows = parser.parse_args(argv).rows
    with scratch.database("import"), TemporaryDirectory() as folder, override_settings(MEDIA_ROOT=folder):
        owner = User.objects.create(username="importer")
        fresh = _measured("CSV, all new", owner, _file(folder, "csv", rows))
        again = _measured("CSV, all known", owner, _file(folder, "csv", rows))
        book = _measured("XLSX, all known", owner, _file(folder, "xlsx", rows))
        saved = Recipient.objects.count()
    parts = {"csv": fresh, "csv_again": again, "xlsx": book}
    return {
        "rows": rows,
        "seconds": max(seconds for seconds, _ in parts.values()),
        "peak_mb": max(peak for _, peak in parts.values()),
        "parts": {name: {"seconds": seconds, "peak_mb": peak} for name, (seconds, peak) in parts.items()},
        "ok": saved == rows and max(seconds for seconds, _ in parts.values()) < 30,
    }


def _measured(what: str, owner: User, file: Path) -> tuple[float, float]:
    with memory.peak() as peak, file.open("rb") as opened:
        start = time.monotonic()
        job = stages.upload(owner, File(opened), filename=file.name, by=owner)
        job.tags = ["imported"]
        job.save()
        _move(job, Import.Status.CHECKING)
        checked = time.monotonic()
        _move(job, Import.Status.SAVING)
        end = time.monotonic()
    print(
        f"{what:<16} check {checked - start:5.1f} s   save {end - checked:5.1f} s   memory +{peak.mb:.0f} MB"
    )
    return round(end - start, 1), round(peak.mb, 1)


def _move(job: Import, status: Import.Status) -> None:
    """Set the status as a worker would, without the broker."""
    Import.objects.filter(pk=job.pk).update(status=status)
    stages.work(job.pk)


def _file(folder: str, kind: str, rows: int) -> Path:
    """Return a file written by a separate process, whose memory is not to be measured."""
    path = Path(folder) / f"people.{kind}"
    subprocess.run([sys.executable, "-m", "benchmarks.tables.address_book", str(path), str(rows)], check=True)
    return path
