"""The places for an owner's long tasks in a worker: imports and reading groups, and firing many reminders.

Without these places one owner's imports could take all threads that a worker has for such work. Firing has places of
its own, since a firing must not wait for an import. So do the passes that ask many services at once: one that waits
for silent services must not be followed by more of them, until no thread is left that fires.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.conf import settings

from config.shares import Shares

THREADS_PER_PLACE = 16
MOST = 16
EACH = 2
THREADS_PER_PASS = 32
MOST_PASSES = 4


@cache
def long_tasks() -> Shares:
    """Return the places for imports and group syncs, of this process."""
    return _places()


@cache
def firings() -> Shares:
    """Return the places for firing the many reminders of one owner, of this process."""
    return _places()


def _places() -> Shares:
    return Shares(total=max(2, min(MOST, settings.WORKER_THREADS // THREADS_PER_PLACE)), each=EACH)


@cache
def passes() -> Shares:
    """Return the places for passes over the services of all owners, of this process."""
    return Shares(total=max(1, min(MOST_PASSES, settings.WORKER_THREADS // THREADS_PER_PASS)), each=1)


@contextmanager
def one_pass(kind: str) -> Iterator[bool]:
    """Hold the place of a kind of pass; give False where it is under way already, or too many others are."""
    if passes().take(kind):
        yield False
        return
    try:
        yield True
    finally:
        passes().give_back(kind)
