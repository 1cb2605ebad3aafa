"""The messages that a shift has yet to send, ordered by time. This module reads no clock and does no IO."""

import heapq
from collections.abc import Iterable

from delivery.engine.shift.outgoing import Outgoing

FINEST = (
    0.05  # seconds; shorter gaps are kept on the average, and what comes due within this may leave together
)

CHECK_AHEAD = 1.0  # seconds before a message is due, its number is checked

GATHER = 0.08  # seconds for which the result of a message of a paced account waits for others, to share a statement
AHEAD = 0.06  # seconds before such a message leaves, its intent is written: with the step of the alarm this is 0.08
PACED = 0.5  # seconds between messages from which an account counts as paced


def patience(gap: float) -> float:
    """Return the seconds for which the result of a message waits for others, by the gap after it."""
    return GATHER if gap >= PACED else 0.0


def ahead(gap: float) -> float:
    """Return the seconds by which the intent of a message is written ahead, by the gap after it.

    So accounts can share a statement, and each message still leaves at its time. Not longer: a worker that dies
    meanwhile leaves a message in doubt that it did not send (docs/decisions/0017-cost-of-a-paced-message.md).
    """
    return AHEAD if gap >= PACED else 0.0


class Agenda:
    """First messages to targets, and next messages to targets that have begun.

    Messages that a slow gateway or database held up do not leave all at once: a target begins no sooner than a gap
    after the last one.

    A target has at most one message here, from its claim until the message has landed or was given back. A message
    whose number has yet to be checked is set aside for that, shortly before it is due, and comes back; the others
    continue meanwhile.
    """

    def __init__(self, *, concurrency: int) -> None:
        self.concurrency = concurrency
        self.groups: set[int] = set()  # targets of which a message left and the last has not landed
        self.beginning: list[Outgoing] = []  # taken from here, and not yet in flight
        self._new: list[Outgoing] = []  # those of them that are first messages
        self._free: dict[str, float] = {}  # the time from which the next target may begin, by action
        self.dropped = 0  # how often everything was given back: a fetch that began before is out of date
        self._firsts: list[Outgoing] = []
        self._following: list[Outgoing] = []
        self._aside: list[Outgoing] = []  # whose numbers are being checked

    def __bool__(self) -> bool:
        return bool(self._firsts or self._following or self._aside)

    def messages(self) -> list[Outgoing]:
        return [*self.beginning, *self._following, *self._firsts, *self._aside]

    def add(self, outgoing: Outgoing) -> None:
        heapq.heappush(self._firsts, outgoing)

    def follow(self, outgoing: Outgoing) -> None:
        """Add the next message of a target that has begun."""
        heapq.heappush(self._following, outgoing)

    def next_at(self) -> float | None:
        """Return when to begin the next message; None while there is none, or no room for it."""
        moments = [outgoing.at - ahead(outgoing.gap) for outgoing in self._following[:1]]
        for first in self._firsts[:1]:
            if first.unchecked and len(self._aside) < self.concurrency:
                moments.append(first.at - CHECK_AHEAD)
            elif not first.unchecked and self._has_room():
                moments.append(self._ready_at(first) - max(first.typing, ahead(first.gap)))
        return min(moments, default=None)

    def is_paced(self) -> bool:
        """Decide whether what comes next can wait for a step of the alarm: its gap is long, and does not grow by it."""
        return all(first.gap >= PACED for first in [*self._following[:1], *self._firsts[:1]])

    def runs_low(self, now: float) -> bool:
        """Decide whether more should be fetched: without pacing, while the last messages are in flight."""
        paced = any(self._ready_at(outgoing) > now for outgoing in self._firsts)
        return len(self._firsts) <= (0 if paced else self.concurrency)

    def has_firsts(self) -> bool:
        return bool(self._firsts or self._aside)

    def set_aside(self, now: float) -> list[Outgoing]:
        """Take out the messages whose numbers are to be checked now; `checked` puts each back."""
        taken = []
        while self._firsts and self._firsts[0].unchecked and len(self._aside) < self.concurrency:
            if self._firsts[0].at - CHECK_AHEAD > now:
                break
            taken.append(heapq.heappop(self._firsts))
            self._aside.append(taken[-1])
        return taken

    def next_typing(self, now: float) -> tuple[Outgoing, float] | None:
        """Return the next message and its time, once, from when typing is shown before it."""
        first = self._firsts[0] if self._firsts else None
        if first is None or not first.typing or first.unchecked or not self._has_room():
            return None
        ready_at = self._ready_at(first)
        if ready_at - first.typing > now:
            return None
        first.typing = 0.0
        return first, ready_at

    def checked(self, outgoing: Outgoing) -> None:
        """Put a message back to where it was, unless it was dropped or forgotten meanwhile."""
        if any(each is outgoing for each in self._aside):
            self._aside = [each for each in self._aside if each is not outgoing]
            outgoing.unchecked = False
            self.add(outgoing)

    def pop_due(self, now: float) -> list[Outgoing]:
        """Take out the messages to begin now, which may leave a moment later, each at its `at`.

        A new target begins only while there is room.
        """
        while self._following and self._following[0].at - ahead(self._following[0].gap) <= now:
            self.beginning.append(heapq.heappop(self._following))
        while self._firsts and self._has_room() and not self._firsts[0].unchecked:
            ready_at = self._ready_at(self._firsts[0])
            if ready_at - ahead(self._firsts[0].gap) > now:
                break
            outgoing = heapq.heappop(self._firsts)
            outgoing.at = ready_at
            self.groups.add(outgoing.target_id)
            self.beginning.append(outgoing)
            self._new.append(outgoing)
            self._keep_gap(outgoing, max(now, ready_at))
        return list(self.beginning)

    def began(self, now: float) -> list[Outgoing]:
        """Note that the messages taken out leave now, or at their time if that is later.

        Return the first ones: the gaps after them are counted from there.
        """
        new, self._new = [outgoing for outgoing in self._new if outgoing.gap >= FINEST], []
        self.beginning.clear()
        for outgoing in new:
            self._keep_gap(outgoing, max(now, outgoing.at))
        return new

    def drop(self) -> list[Outgoing]:
        """Empty the agenda; return its messages, which the caller gives back."""
        messages = self._firsts + self._following + self._aside
        self._firsts, self._following, self._aside = [], [], []
        self.dropped += 1
        return messages

    def leave(self, targets: Iterable[int]) -> None:
        """Free the places of targets."""
        self.groups.difference_update(targets)

    def forget(self, targets: set[int]) -> list[Outgoing]:
        """Remove and return messages of targets that are claimed anew, after a pause and a resume took them away."""
        stale = [
            outgoing
            for outgoing in self._firsts + self._following + self._aside
            if outgoing.target_id in targets
        ]
        self._firsts = [outgoing for outgoing in self._firsts if outgoing.target_id not in targets]
        self._following = [outgoing for outgoing in self._following if outgoing.target_id not in targets]
        self._aside = [outgoing for outgoing in self._aside if outgoing.target_id not in targets]
        heapq.heapify(self._firsts)
        heapq.heapify(self._following)
        self.leave(outgoing.target_id for outgoing in stale)
        return stale

    def _has_room(self) -> bool:
        return len(self.groups) < self.concurrency

    def _ready_at(self, outgoing: Outgoing) -> float:
        return max(outgoing.at, self._free.get(outgoing.run.whose.action, 0.0))

    def _keep_gap(self, outgoing: Outgoing, leaves: float) -> None:
        action = outgoing.run.whose.action
        since = leaves if outgoing.gap >= FINEST else max(self._free.get(action, 0.0), leaves - FINEST)
        self._free[action] = since + outgoing.gap
