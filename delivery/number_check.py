"""Asks a service whether a number exists before the first message to it.

Writing to numbers that are not there is what gives a sender away. A service that cannot answer now stops nothing.
"""

import asyncio

from delivery.outcomes import Rejected
from delivery.transports.base import Transport, UnansweredError

PATIENCE = 5.0  # seconds; `knobs.longest_send` counts on it
NOT_THERE = Rejected(reason="the service knows nobody at this number", code="unknown_number")


async def refused(transport: Transport, address: str) -> Rejected | None:
    """Why not to write to this address, if it does not exist; None where it does, or nobody knows."""
    if not transport.capabilities.number_check or not address.startswith("+"):
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            return None if await transport.check_number(address) else NOT_THERE
    except (UnansweredError, TimeoutError):
        return None
