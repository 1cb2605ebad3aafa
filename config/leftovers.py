"""Ends the processes that a killed `make run` left behind.

Every process of a run carries a mark in its environment, which its own children inherit. Process ids alone
would not be enough: the system gives those of dead processes to others.
"""

import os
import signal
from pathlib import Path

from config.embedded.process import until

MARK = "PACELINE_RUN"


def end_leftovers(var: Path) -> int:
    """Stop the processes of an earlier run on `var`, and return how many there were."""
    found = _marked(var)
    _signal(found, signal.SIGTERM)
    if not until(lambda: not _marked(var), seconds=20, every=0.2):
        _signal(_marked(var), signal.SIGKILL)
    return len(found)


def _marked(var: Path) -> list[int]:
    """Return the processes with the mark. Without /proc none are found, and their ports count as taken."""
    mark = os.fsencode(f"{MARK}={var}")
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if mark in _environment(entry)]


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue
