"""Counts in a simulation who may leave: targets with times of their own, and new chats of a service's quota. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate

from delivery.planning.values import Job, NewChats

A_CYCLE = timedelta(days=30)  # of a quota, after the one whose end the service said


class Queue:
    """The targets of a job that are left, and how many of them may leave by their plan."""

    def __init__(self, job: Job) -> None:
        self.left = job.targets
        self._ready_at = job.ready_at
        self._taken = 0
        self._times = [planned.at for planned in job.planned]
        self._counts = list(accumulate(planned.targets for planned in job.planned))

    def released(self, now: datetime) -> int:
        """Return how many of those that are left may leave by a moment."""
        if not self._times:
            return self.left
        passed = bisect_right(self._times, now)
        return max(0, min(self.left, self._counts[passed - 1] - self._taken)) if passed else 0

    def ready_at(self, never: datetime) -> datetime:
        """Return from when on one may leave: `never`, if the others have no time."""
        if not self._times:
            return self._ready_at
        place = bisect_right(self._counts, self._taken)
        return max(self._ready_at, self._times[place]) if place < len(self._times) else never

    def waiting(self) -> list[tuple[datetime, int]]:
        """Return those that are left and have times of their own: when, and how many."""
        return list(self._from(self._taken))

    def waiting_between(self, since: datetime, until: datetime) -> int:
        """Return how many of those that are left have a time of their own in a span."""
        first, last = (self._before(at) for at in (since, until))
        return max(0, last - max(first, self._taken))

    def take(self, targets: int) -> list[tuple[datetime, int]]:
        """Take targets; return those of them that have times of their own: when, and how many."""
        found, rest = list[tuple[datetime, int]](), targets
        for at, count in self._from(self._taken):
            if rest <= 0:
                break
            found.append((at, min(count, rest)))
            rest -= count
        self.left, self._taken = self.left - targets, self._taken + targets
        return found

    def _from(self, taken: int) -> Iterator[tuple[datetime, int]]:
        """Yield when the targets after the first `taken` may leave, and how many."""
        for place in range(bisect_right(self._counts, taken), len(self._times)):
            yield self._times[place], self._counts[place] - taken
            taken = self._counts[place]

    def _before(self, at: datetime) -> int:
        place = bisect_left(self._times, at)
        return self._counts[place - 1] if place else 0


class ChatsLeft:
    """The new chats that a service still allows, over its cycles."""

    def __init__(self, chats: NewChats) -> None:
        self._size, self._locked_until = chats.size, chats.locked_until
        self._left, self._until = chats.left, chats.until

    def left(self, at: datetime) -> int | None:
        """Return how many new chats may begin at a moment; None is any number."""
        if self._locked_until is not None and at < self._locked_until:
            return 0
        return self._cycle(at)[0]

    def opens_at(self, now: datetime) -> datetime:
        """Return when the next new chat may begin."""
        at = max(now, self._locked_until or now)
        left, until = self._cycle(at)
        return at if left != 0 or until is None else until

    def take(self, at: datetime, chats: int) -> None:
        left, self._until = self._cycle(at)
        self._left = None if left is None else max(0, left - chats)

    def _cycle(self, at: datetime) -> tuple[int | None, datetime | None]:
        """Return what is left of the cycle that holds a moment, and its end."""
        if self._until is None or at < self._until:
            return self._left, self._until
        cycles = (at - self._until) // A_CYCLE + 1
        return (None if self._left is None else self._size), self._until + cycles * A_CYCLE
