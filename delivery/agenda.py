"""What a shift has yet to send, by time. No clock, no IO."""

import heapq
from collections.abc import Iterable

from delivery.slots import Slot

FINEST = (
    0.05  # seconds; shorter gaps are kept on the average, and what comes due within this may leave together
)


class Agenda:
    """First messages to targets, and next messages to targets that have begun.

    What a slow gateway or database held up does not bunch: a target begins no sooner than a gap after the last one.

    A target has one slot at the most, from its claim until it has landed or was given back.
    """

    def __init__(self, *, concurrency: int) -> None:
        self.concurrency = concurrency
        self.groups: set[int] = set()  # targets of which a message left and the last has not landed
        self.beginning: list[Slot] = []  # taken from here, and not yet in the air
        self._new: list[Slot] = []  # those of them that are first messages
        self._free: dict[str, float] = {}  # from when on the next target may begin, by action
        self.dropped = 0  # how often all was given back: what was fetched meanwhile is out of date
        self._firsts: list[Slot] = []
        self._following: list[Slot] = []

    def __bool__(self) -> bool:
        return bool(self._firsts or self._following)

    def slots(self) -> list[Slot]:
        return [*self.beginning, *self._following, *self._firsts]

    def add(self, slot: Slot) -> None:
        heapq.heappush(self._firsts, slot)

    def follow(self, slot: Slot) -> None:
        """The next message of a target that has begun."""
        heapq.heappush(self._following, slot)

    def next_at(self) -> float | None:
        """When the next message may leave; None while there is none, or no room for it."""
        moments = [slot.at for slot in self._following[:1]]
        if self._firsts and self._has_room():
            moments.append(self._ready_at(self._firsts[0]))
        return min(moments, default=None)

    def runs_low(self, now: float) -> bool:
        """Whether more should be fetched: without pacing, while the last ones are in the air."""
        paced = any(self._ready_at(slot) > now for slot in self._firsts)
        return len(self._firsts) <= (0 if paced else self.concurrency)

    def has_firsts(self) -> bool:
        return bool(self._firsts)

    def pop_due(self, now: float) -> list[Slot]:
        """A group that has begun goes on; a new one begins while there is room."""
        while self._following and self._following[0].at <= now:
            self.beginning.append(heapq.heappop(self._following))
        while self._firsts and self._has_room() and self._ready_at(self._firsts[0]) <= now:
            slot = heapq.heappop(self._firsts)
            self.groups.add(slot.target_id)
            self.beginning.append(slot)
            self._new.append(slot)
            self._keep_gap(slot, now)
        return list(self.beginning)

    def began(self, now: float) -> list[Slot]:
        """What was taken has left; answers with the targets that have begun, whose gaps are counted from here."""
        new, self._new = [slot for slot in self._new if slot.gap >= FINEST], []
        self.beginning.clear()
        for slot in new:
            self._keep_gap(slot, now)
        return new

    def drop(self) -> list[Slot]:
        """All that is still here, to be given back."""
        slots = self._firsts + self._following
        self._firsts, self._following = [], []
        self.dropped += 1
        return slots

    def leave(self, targets: Iterable[int]) -> None:
        """Their places are free."""
        self.groups.difference_update(targets)

    def forget(self, targets: set[int]) -> list[Slot]:
        """Slots of targets that were taken from this shift, by a pause and a resume, and are claimed anew."""
        stale = [slot for slot in self._firsts + self._following if slot.target_id in targets]
        self._firsts = [slot for slot in self._firsts if slot.target_id not in targets]
        self._following = [slot for slot in self._following if slot.target_id not in targets]
        heapq.heapify(self._firsts)
        heapq.heapify(self._following)
        self.leave(slot.target_id for slot in stale)
        return stale

    def _has_room(self) -> bool:
        return len(self.groups) < self.concurrency

    def _ready_at(self, slot: Slot) -> float:
        return max(slot.at, self._free.get(slot.run.whose.action, 0.0))

    def _keep_gap(self, slot: Slot, now: float) -> None:
        action = slot.run.whose.action
        since = now if slot.gap >= FINEST else max(self._free.get(action, 0.0), now - FINEST)
        self._free[action] = since + slot.gap
