"""The places for an owner's long tasks in a worker: imports and reading groups, and firing many reminders.

Without these places one owner's imports could take all threads that a worker has for such work. Firing has places of
its own, since a firing must not wait for an import. So do the passes that ask many services at once: one that waits
for silent services must not be followed by more of them, until no thread is left that fires. Work on the database that
goes on in slices is done once at a time in a process: ticks that come meanwhile must not add up.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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


@cache
def in_slices() -> Shares:
    """Return the places for work on the database that goes on slice by slice, of this process: one of each kind.

    They are not those of passes: to remove old rows may take a minute, and replies must not wait for that.
    """
    return Shares(total=2, each=1)


def one_pass(kind: str) -> AbstractContextManager[bool]:
    """Hold the place of a kind of pass; give False where it is under way already, or too many others are."""
    return _one(passes(), kind)


def one_in_slices(kind: str) -> AbstractContextManager[bool]:
    """Hold the place of a kind of work in slices; give False where it is under way already."""
    return _one(in_slices(), kind)


@contextmanager
def _one(places: Shares, kind: str) -> Iterator[bool]:
    if places.take(kind):
        yield False
        return
    try:
        yield True
    finally:
        places.give_back(kind)
