"""How many accounts a worker serves at once: fewer than it has threads.

A shift keeps a thread for a minute. If shifts could take all of them, the common tasks would wait behind accounts
that wait for their turn: nothing would be fired, no window opened and no dead pump noticed. So a pump that finds no
seat ends at once and comes back soon; and while some do, a shift that ends lets them go first.
"""

import threading
import time

import structlog

log = structlog.get_logger(__name__)

CROWDED_FOR = 10.0  # seconds after a pump found no seat
LEAST, MOST = 2, 16  # threads for the common tasks: an eighth, within these


class Seats:
    """Of one process; without a limit until a worker says how many threads it has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._most: int | None = None
        self._taken = 0
        self._refused_at = float("-inf")

    def share(self, threads: int) -> None:
        """The rest is for the common tasks."""
        self._most = max(1, threads - min(MOST, max(LEAST, threads // 8)))

    def take(self) -> bool:
        with self._lock:
            if self._most is not None and self._taken >= self._most:
                if not self.crowded():
                    log.warning("more_busy_accounts_than_threads", threads_for_accounts=self._most)
                self._refused_at = time.monotonic()
                return False
            self._taken += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._taken -= 1

    def crowded(self) -> bool:
        """Whether some wait for a seat."""
        return time.monotonic() - self._refused_at < CROWDED_FOR


seats = Seats()
