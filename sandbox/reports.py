"""Collects an account's reports for its registered webhook: stored at once, sent by `sender.py`."""

import asyncio
import json
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

MOST_WAITING = 10_000  # the oldest are dropped first


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """The address for an account's reports, and the secret that signs them."""

    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One event that waits to be sent."""

    webhook: Webhook
    body: bytes


class Reports:
    """The events that wait to be sent, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Report] = deque(maxlen=MOST_WAITING)
        self._later: list[tuple[float, int, Report]] = []  # a heap: when, a number, and what
        self._some = asyncio.Event()
        self._numbers = count(1)

    def add(
        self,
        webhook: Webhook | None,
        *,
        at: int,
        account: str,
        event: str,
        after_ms: int = 0,
        **facts: Any,
    ) -> None:
        """Add a report, to be sent now or `after_ms` later; does nothing where no webhook is registered."""
        if webhook is None:
            return
        number = next(self._numbers)
        told = {"id": f"e{at:x}-{number:x}", "at": at + after_ms, "account": account, "event": event}
        body = json.dumps(told | facts, ensure_ascii=False).encode(errors="backslashreplace")
        report = Report(webhook=webhook, body=body)
        if not after_ms:
            self._waiting.append(report)
        elif len(self._later) < MOST_WAITING:
            heappush(self._later, (time.monotonic() + after_ms / 1000, number, report))
        self._some.set()

    async def next(self) -> Report:
        """Return the oldest report; waits for one where there is none."""
        while True:
            self._take_up_due()
            if self._waiting:
                return self._waiting.popleft()
            self._some.clear()
            pause = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._some.wait(), pause)

    def _take_up_due(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self._waiting.append(heappop(self._later)[2])
