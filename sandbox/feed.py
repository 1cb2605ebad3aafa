"""Tells open pages that something changed; the pages then read everything again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Feed:
    """Announces changes. It costs the gateway almost nothing while no page is open."""

    def __init__(self) -> None:
        self._pages: set[asyncio.Event] = set()

    def touch(self) -> None:
        for page in self._pages:
            page.set()

    @contextmanager
    def watch(self) -> Iterator[asyncio.Event]:
        """Return an event that is set at every change; the code that waits for it clears it."""
        page = asyncio.Event()
        self._pages.add(page)
        try:
            yield page
        finally:
            self._pages.discard(page)
