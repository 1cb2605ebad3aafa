"""Wakes the shifts of an event loop at whole steps of time, all that are due within a step together.

A timer of its own for each message wakes the process for each message, and waking up costs more than the work then.
uvloop's timers count whole milliseconds besides: one may be early by one and a half, and whoever sets it again for the
rest goes round and round until the time has come.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger(__name__)

STEP_MS = 20  # by up to so much a call is late
EXACT_MS = 1
TICK = 0.0015  # seconds by which a timer of uvloop may be early


@dataclass(slots=True, eq=False)
class Call:
    """A call that is to come; whoever asked for it can take it back."""

    _call: Callable[[], None] | None

    def cancel(self) -> None:
        self._call = None

    def __call__(self) -> None:
        if self._call is not None:
            self._call()


@dataclass(slots=True)
class Alarm:
    """The calls that are to come on one event loop. Use it on that loop only."""

    _calls: dict[int, list[Call]] = field(default_factory=dict)  # by their times in milliseconds

    def at(self, moment: float, call: Callable[[], None], *, step_ms: int = STEP_MS) -> Call:
        """Call back at a monotonic time or up to a step later, never before it."""
        due, made = math.ceil(moment * 1000 / step_ms) * step_ms, Call(call)
        calls = self._calls.get(due)
        if calls is None:
            calls = self._calls[due] = []
            wait = max(0.0, due / 1000 - time.monotonic())
            asyncio.get_running_loop().call_later(wait + TICK, self._ring, due)
        calls.append(made)
        return made

    def _ring(self, due: int) -> None:
        for call in self._calls.pop(due):
            try:
                call()
            except Exception:  # the others wait for accounts of other people
                log.exception("alarm_failed")
