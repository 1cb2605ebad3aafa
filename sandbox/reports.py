"""Collects an account's reports for its registered webhook: stored at once, sent by `sender.py`."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
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
        self._some = asyncio.Event()
        self._numbers = count(1)

    def add(self, webhook: Webhook | None, *, at: int, account: str, event: str, **facts: Any) -> None:
        """Add a report; does nothing where no webhook is registered."""
        if webhook is None:
            return
        report = {"id": f"e{at:x}-{next(self._numbers):x}", "at": at, "account": account, "event": event}
        body = json.dumps(report | facts, ensure_ascii=False).encode(errors="backslashreplace")
        self._waiting.append(Report(webhook=webhook, body=body))
        self._some.set()

    async def next(self) -> Report:
        """Return the oldest report; waits for one where there is none."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()
