"""When a delivery is tried again. Pure.

The pause grows from 5 seconds to 6 hours, with a fifth of jitter, so that many deliveries to one receiver do not
come back at the same moment: about 20 tries within three days.
"""

from datetime import datetime, timedelta
from random import Random

PAUSES = (5, 30, 120, 600, 1800, 3600, 7200, 14_400)  # seconds
LONGEST = 21_600
JITTER = 0.2


def pause_after(failures: int, rng: Random) -> timedelta:
    """Return how long to wait after so many failures in a row."""
    seconds = PAUSES[failures - 1] if 0 < failures <= len(PAUSES) else LONGEST
    return timedelta(seconds=seconds * rng.uniform(1 - JITTER, 1 + JITTER))


def next_try(failures: int, *, now: datetime, give_up_at: datetime, rng: Random) -> datetime | None:
    """Return when to try again, or None where it is given up."""
    again = now + pause_after(failures, rng)
    return again if again <= give_up_at else None
