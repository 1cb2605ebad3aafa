"""Caps over a moving span of days: how much room a day has, and when there is room again. Pure.

Plans count whole days: a week is seven of them. The simulation counts in parts of a span, as the limiter does.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil

from delivery.pacing import BUCKETS

A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """At most `cap` messages in any span of `length`.

    `sent` are the messages that still count: when the last of a part left, and how many. `past` are the same by the
    number of their day, where today is 0.
    """

    cap: int
    length: timedelta
    sent: Sequence[tuple[datetime, int]] = ()
    past: Mapping[int, int] = field(default_factory=dict)

    def room(self, day: int, planned: Mapping[int, int]) -> int:
        """Return how many messages a day may still take, so that no span of whole days with it has too many."""
        days = ceil(self.length / A_DAY)
        counts = [self.past.get(each, 0) + planned.get(each, 0) for each in range(day - days + 1, day + days)]
        window = most = sum(counts[:days])
        for leaving, coming in zip(counts, counts[days:], strict=False):
            window += coming - leaving
            most = max(most, window)
        return max(0, self.cap - most)


class Use:
    """The messages of a moving span in a simulation."""

    def __init__(self, rolling: Rolling) -> None:
        self._cap = rolling.cap
        self._part = rolling.length / BUCKETS
        self._length = rolling.length + self._part / 2  # a message counts until its part of the span is over
        self._counts = deque((at + self._length, count) for at, count in rolling.sent)
        self._used = sum(count for _, count in self._counts)

    def room(self, now: datetime) -> int:
        """Return how many messages may leave at a moment; moments go forward."""
        while self._counts and self._counts[0][0] <= now:
            self._used -= self._counts.popleft()[1]
        return max(0, self._cap - self._used)

    def opens_at(self, now: datetime, messages: int) -> datetime:
        """Return when there is room for so many messages."""
        missing = messages - self.room(now)
        for leaves, count in self._counts:
            if missing <= 0:
                break
            now, missing = leaves, missing - count
        return now

    def add(self, first: datetime, last: datetime, messages: int) -> None:
        """Count messages that leave evenly between two moments."""
        pieces = min(messages, ceil((last - first) / self._part) or 1)
        for piece in range(pieces):
            count = messages * (piece + 1) // pieces - messages * piece // pieces
            at = first + (last - first) * (piece + 1) / pieces
            self._counts.append((at + self._length, count))
        self._used += messages
