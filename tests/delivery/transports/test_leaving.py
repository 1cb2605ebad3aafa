"""The moment at which a message leaves, for transports that work in threads."""

import asyncio
import time

import pytest

from delivery.transports.leaving import PROMPT, HeldBackError, from_thread, looking_with


async def test_without_a_look_a_thread_goes_on() -> None:
    await asyncio.to_thread(from_thread())


async def test_a_thread_that_heard_late_that_the_look_has_passed_looks_again() -> None:
    """The process stood still between the look and the thread: the window may have closed meanwhile."""
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            # The answer is handed over after this.
            asyncio.get_running_loop().call_soon(time.sleep, 2 * PROMPT)
            return
        raise HeldBackError("its window closes")

    with looking_with(look):
        call = from_thread()
    with pytest.raises(HeldBackError):
        await asyncio.to_thread(call)
    assert looks == 2
