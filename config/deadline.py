"""Waits for something that cannot be interrupted, and no longer than a deadline."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T], *, too_late: Callable[[T], object]) -> T:
    """Return the answer of `work`, or raise TimeoutError; an answer that comes later goes to `too_late`.

    The work runs in a thread, since nothing else ends a name lookup or a read from a hung disk. A stuck thread ends by
    itself, and keeps no program from ending.
    """
    task = _Task(work, too_late)
    threading.Thread(target=task.run, name="within", daemon=True).start()
    return task.result(seconds)


class _Task(Generic[T]):
    def __init__(self, work: Callable[[], T], too_late: Callable[[T], object]) -> None:
        self._work, self._too_late = work, too_late
        self._lock, self._done = threading.Lock(), threading.Event()
        self._answer: T | None = None
        self._error: BaseException | None = None
        self._given_up = False

    def run(self) -> None:
        try:
            answer = self._work()
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            self._error = error
        else:
            with self._lock:
                self._answer = answer
                unwanted = self._given_up
            if unwanted:
                self._too_late(answer)
        self._done.set()

    def result(self, seconds: float) -> T:
        self._done.wait(seconds)
        with self._lock:
            self._given_up = not self._done.is_set() and self._answer is None
        if self._given_up:
            raise TimeoutError(f"no answer within {seconds:g} s")
        self._done.wait()
        if self._error is not None:
            raise self._error
        return cast("T", self._answer)
