"""The memory that a piece of work takes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil


@dataclass(slots=True)
class Peak:
    """The highest memory use above the starting value, in MB."""

    mb: float = 0.0


@contextmanager
def peak() -> Iterator[Peak]:
    """Watch this process from a separate thread."""
    process, found, ended = psutil.Process(), Peak(), threading.Event()
    before = process.memory_info().rss

    def watch() -> None:
        while not ended.wait(0.02):
            found.mb = max(found.mb, (process.memory_info().rss - before) / 1e6)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        ended.set()
        watcher.join()
