"""Two checkouts on one machine: both run at once, and neither sends through the other's sandbox."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.embedded.process import until
from sandbox.witness import deliveries
from tests.config.programs import PROJECT, short_folder

pytestmark = pytest.mark.xdist_group("embedded")

GROUPS = 90  # of the demo
READY = re.compile(r"Paceline is ready: (\S+)")
SANDBOX = re.compile(r"The sandbox, where its messages arrive: (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """`make run` with a folder, servers and ports of its own."""

    var: Path
    process: "subprocess.Popen[bytes]"

    def said(self) -> str:
        return (self.var / "said.log").read_text(errors="replace")

    def ready(self) -> bool:
        return bool(READY.search(self.said()))

    def started_or_ended(self) -> bool:
        return self.ready() or self.process.poll() is not None

    def addresses(self) -> set[str]:
        return {found.group(1) for found in (READY.search(self.said()), SANDBOX.search(self.said())) if found}

    def manage(self, *arguments: str) -> str:
        """Run a command beside it, as a person would in a second terminal."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=environment(self.var),
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
            check=True,
        )
        return done.stdout

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(120)


def environment(var: Path) -> dict[str, str]:
    """Return an environment without the test's servers and without the values of a developer's .env."""
    unset = dict.fromkeys(
        ("DATABASE_URL", "REDIS_URL", "PORT", "SANDBOX_PORT", "SANDBOX_URL", "PUBLIC_URL"), ""
    )
    quick = {"MINUTE_SECONDS": "0.5", "WORKER_THREADS": "8"}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **unset, **quick, "PACELINE_VAR": str(var)}


@contextmanager
def checkout() -> Iterator[Checkout]:
    with short_folder() as var, (var / "said.log").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "config.run"],
            cwd=PROJECT,
            env=environment(var),
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        started = Checkout(var=var, process=process)
        try:
            yield started
        finally:
            started.stop()


def test_two_checkouts_run_side_by_side_to_the_end() -> None:
    with checkout() as one, checkout() as other:
        both = (one, other)
        for each in both:
            assert until(each.started_or_ended, seconds=300, every=0.2)
            assert each.ready(), each.said()
        assert len(one.addresses() | other.addresses()) == 4
        for each in both:
            each.manage("fire_reminder", "1")
        for each in both:
            assert f"{GROUPS} of {GROUPS} sent" in each.manage("run_status", "1", "--watch", "--every", "0.2")
            assert len(deliveries(each.var / "sandbox.jsonl")) == GROUPS
        assert [each.stop() for each in both] == [0, 0]
