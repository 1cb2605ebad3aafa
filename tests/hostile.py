"""Measures how work grows with a hostile input, on a machine where no single time means anything."""

from collections.abc import Callable
from time import process_time
from typing import Any

ENOUGH_SECONDS = 0.02  # less than this is noise, and harmless


def grows_no_faster_than_its_input(
    work: Callable[[Any], object], made: Callable[[int], Any], size: int
) -> bool:
    """Return whether four times the input takes far less than sixteen times the work, as quadratic code would."""
    small, large = made(size), made(4 * size)
    for _ in range(4):
        long = _seconds(work, large)
        if long < ENOUGH_SECONDS or long < 8 * max(_seconds(work, small), ENOUGH_SECONDS / 8):
            return True
    return False


def _seconds(work: Callable[[Any], object], given: Any) -> float:
    """The processor time of the quickest of some tries."""
    times = []
    for _ in range(3):
        begin = process_time()
        work(given)
        times.append(process_time() - begin)
    return min(times)
