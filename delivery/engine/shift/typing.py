"""Shows “seen” and “typing” before the messages of one shift, as a person would (SPEC P18).

Best effort: no message waits for it, nothing is retried, and a service that cannot do it is left alone for the rest of
the shift. It is shown inside the gap before a message, so it costs no rate. It is no message: it asks for no permit and
leaves no row in the ledger. But it is shown only where the message itself might leave now: targets are claimed a minute
ahead, and whoever has opted out since sees nothing of us.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from delivery.transports.base import Transport, UnansweredError

log = structlog.get_logger(__name__)

STARTS = 1.0  # seconds that the shortest text takes
PER_LETTER = 1 / 15
LONGEST = 12.0  # WhatsApp shows it for so long at most, unless it is told again
SHARE_OF_GAP = 0.7  # the rest is silence, so that it never reaches into the message before
SHORTEST = 0.5  # less is not worth a request
BEFORE = 0.2  # seconds between the end of typing and the message
PATIENCE = 2.0  # seconds for the request that ends it
GIVES_UP = 3  # failures in a row


def seconds_of_typing(letters: int, gap: float) -> float:
    """Return for how long typing is shown before a text of so many letters, inside a gap; 0 where that is too short."""
    seconds = min(STARTS + letters * PER_LETTER, LONGEST, SHARE_OF_GAP * gap)
    return seconds if seconds >= SHORTEST else 0.0


class Typing:
    """The typing that one shift shows: at most in one chat at a time."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    def start(self, address: str, *, until: float, allowed: Callable[[], Awaitable[bool]]) -> None:
        """Show typing in a chat until a monotonic time, if it is `allowed`.

        Nothing happens where it is too late or another is shown.
        """
        seconds = until - BEFORE - time.monotonic()
        busy = self._task is not None and not self._task.done()
        if seconds < SHORTEST - BEFORE or busy or self._failures >= GIVES_UP:
            return
        self._task = asyncio.create_task(self._show(address, seconds, allowed))

    async def stop(self) -> None:
        """Forget what is shown: the service ends it by itself."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _show(self, address: str, seconds: float, allowed: Callable[[], Awaitable[bool]]) -> None:
        ends = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                if not await allowed():
                    return
                await self._transport.start_typing(address, seconds)
            await asyncio.sleep(max(0.0, ends - time.monotonic()))
            self._failures = 0
        except (UnansweredError, TimeoutError) as error:
            self._failed(str(error) or "no answer in time")
        except Exception:  # as any service that cannot do it: it stops nothing
            log.exception("typing_failed", transport=self._transport.kind)
            self._failures += 1
        await self._end(address)

    async def _end(self, address: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._transport.stop_typing(address)
        except (UnansweredError, TimeoutError):
            log.debug("typing_not_ended", transport=self._transport.kind)
        except Exception:  # as above
            log.exception("typing_failed", transport=self._transport.kind)

    def _failed(self, reason: str) -> None:
        self._failures += 1
        if self._failures == GIVES_UP:
            log.warning("typing_given_up", transport=self._transport.kind, reason=reason)
