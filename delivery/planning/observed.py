"""What the ledger teaches about an account: how fast its service really takes messages (SPEC S5). Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

FEWEST = 20  # messages from which something can be learned
A_BREAK = timedelta(seconds=60)  # a longer silence was a wait, not work
BUSY = 0.5  # of the time that could have been spent sending


def seconds_per_message(sends: Sequence[tuple[datetime, int]], *, in_flight: int) -> float:
    """The seconds from one message to the next while the service was the bottleneck; 0 where it was not.

    `sends` are the beginnings of messages, ascending, each with the milliseconds that it took; at most
    `in_flight` were under way at once. Where these were busy most of the time, the service set the pace and will
    do so again. Where they were idle, the limits of that day did, and today's may be others.
    """
    gaps = [
        ((after - before).total_seconds(), took / 1000)
        for (before, took), (after, _) in pairwise(sends)
        if after - before <= A_BREAK
    ]
    if len(gaps) < FEWEST:
        return 0.0
    elapsed, work = sum(gap for gap, _ in gaps), sum(took for _, took in gaps)
    busy = work >= BUSY * elapsed * in_flight
    return elapsed / len(gaps) if busy else 0.0
