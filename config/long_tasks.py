"""The places for an owner's long tasks in a worker: imports and reading groups, and firing many reminders.

Without these places one owner's imports could take all threads that a worker has for such work. Firing has places of
its own, since a firing must not wait for an import.
"""

from functools import cache

from django.conf import settings

from config.shares import Shares

THREADS_PER_PLACE = 16
MOST = 16
EACH = 2


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
