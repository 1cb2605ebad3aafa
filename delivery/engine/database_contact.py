"""Watches whether the database still answers this process.

A worker that is cut off from PostgreSQL, but not from Redis, must let go of its accounts: it can send nothing, and as
long as it renews its leases no other worker can either. Every statement of the engine notes its success here. An idle
worker asks on purpose: silence alone says nothing.
"""

import threading
import time
from typing import Any

import psycopg
import structlog
from django.db import connection

log = structlog.get_logger(__name__)

ASK_AFTER = 2.0  # seconds of silence after which the database is asked whether it is there
ASK_AGAIN = 1.0  # seconds for which a failed question stands for all who want to know
ANSWER_SECONDS = 5


class Contact:
    """The time at which the database last answered, for all threads of a process."""

    def __init__(self) -> None:
        self._answered = time.monotonic()
        self._failed = float("-inf")
        self._asking = threading.Lock()

    def note(self) -> None:
        """Note that a statement has succeeded."""
        self._answered = time.monotonic()

    def silent_for(self) -> float:
        """Return the seconds since the last success."""
        return time.monotonic() - self._answered

    def there(self) -> bool:
        """Decide whether the database answers now; wait a few seconds at the most."""
        if self.silent_for() < ASK_AFTER:
            return True
        with self._asking:  # one question is enough for all threads
            if self.silent_for() < ASK_AFTER:
                return True
            if time.monotonic() - self._failed < ASK_AGAIN:
                return False
            return self._ask()

    def _ask(self) -> bool:
        """Ask without the pool, which waits long for a connection to a server that is away."""
        try:
            with psycopg.connect(**parameters() | {"connect_timeout": ANSWER_SECONDS}) as fresh:
                fresh.execute("SELECT 1")
        except psycopg.Error:
            log.warning("database_away")
            self._failed = time.monotonic()
            return False
        self.note()
        return True


def parameters() -> dict[str, Any]:
    """Return Django's connection parameters, without those that only its own connections take."""
    own = ("context", "cursor_factory", "pool")
    return {name: value for name, value in connection.get_connection_params().items() if name not in own}


contact = Contact()
