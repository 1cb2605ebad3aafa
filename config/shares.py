"""Divides a fixed number of places among owners, so that no owner can take all of them (SPEC K7).

`Shares` refuses where no place is free. `SharedThreads` lets work wait for a place: each owner has a queue of its
own, and the queues take turns. Both count inside one process.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Any]


class Full(Enum):
    """The reason why no place was free."""

    OWN = "the owner uses all of its own places"
    ALL = "all places are in use"


class NoPlaceError(Exception):
    """Raised when no place is free; `full` says whose places are used up."""

    def __init__(self, full: Full) -> None:
        super().__init__(full.value)
        self.full = full


class Shares:
    """`total` places, of which one owner gets at most `each`.

    `each` is below `total`: one owner alone can never fill all places. With a total of one there is nothing to
    divide, and owners take turns.
    """

    def __init__(self, *, total: int, each: int) -> None:
        if total < 1 or each < 1:
            raise ValueError("There must be at least one place.")
        self.total = total
        self.each = min(each, max(1, total - 1))
        self._lock = threading.Lock()
        self._taken: Counter[Hashable] = Counter()

    def take(self, owner: Hashable) -> Full | None:
        """Take a place for the owner; return None where it was taken, else the reason."""
        with self._lock:
            if self._taken[owner] >= self.each:
                return Full.OWN
            if self._taken.total() >= self.total:
                return Full.ALL
            self._taken[owner] += 1
            return None

    def give_back(self, owner: Hashable) -> None:
        with self._lock:
            self._taken[owner] -= 1
            if self._taken[owner] <= 0:
                del self._taken[owner]  # otherwise every owner who ever came would stay in memory

    def taken(self, owner: Hashable) -> int:
        """Return how many of the owner's places are in use."""
        with self._lock:
            return self._taken.get(owner, 0)

    @contextmanager
    def place(self, owner: Hashable) -> Iterator[None]:
        """Hold a place for the owner; raise NoPlaceError."""
        if full := self.take(owner):
            raise NoPlaceError(full)
        try:
            yield
        finally:
            self.give_back(owner)


@dataclass(frozen=True, slots=True)
class _Waiting:
    work: Work
    future: "Future[Any]"


class SharedThreads:
    """Threads that owners share: work waits while its owner's places, or all places, are in use."""

    def __init__(self, *, total: int, each: int, name: str) -> None:
        self._shares = Shares(total=total, each=each)
        self._threads = ThreadPoolExecutor(max_workers=total, thread_name_prefix=name)
        self._lock = threading.Lock()
        # The queue that was served last is at the end.
        self._lines: OrderedDict[Hashable, deque[_Waiting]] = OrderedDict()

    def submit(self, owner: Hashable, work: Callable[[], T]) -> "Future[T]":
        """Run `work` in a thread. The future can be canceled until a thread begins with it."""
        future: Future[T] = Future()
        with self._lock:
            self._lines.setdefault(owner, deque()).append(_Waiting(work, future))
        self._start_waiting()
        return future

    def _start_waiting(self) -> None:
        """Start all work that finds a place, one of each queue in turn."""
        with self._lock:
            while (found := self._next()) is not None:
                owner, waiting = found
                self._threads.submit(self._do, owner, waiting)

    def _next(self) -> tuple[Hashable, _Waiting] | None:
        for owner in list(self._lines):
            full = self._shares.take(owner)
            if full is Full.ALL:
                return None
            if full is None:
                return owner, self._taken_from(owner)
        return None

    def _taken_from(self, owner: Hashable) -> _Waiting:
        line = self._lines[owner]
        waiting = line.popleft()
        if line:
            self._lines.move_to_end(owner)
        else:
            del self._lines[owner]
        return waiting

    def _do(self, owner: Hashable, waiting: _Waiting) -> None:
        try:
            if waiting.future.set_running_or_notify_cancel():
                _fulfil(waiting)
        finally:
            self._shares.give_back(owner)
            self._start_waiting()


def _fulfil(waiting: _Waiting) -> None:
    try:
        result = waiting.work()
    except BaseException as error:  # noqa: BLE001 - it is the caller's, and reaches them through the future
        waiting.future.set_exception(error)
    else:
        waiting.future.set_result(result)
