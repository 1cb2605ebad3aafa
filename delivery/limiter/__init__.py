"""Permits to send: when an account may send its next messages, over all its limits at once (SPEC P2 to P8).

Each question is one round trip to Redis, where limiter.lua decides, so that any number of workers agree. Redis is
only a cache: the ledger is the truth, and a limiter that lost its state is rebuilt from the ledger before anything
is granted. Answers are values.

A state is trusted only if it carries the mark of the last answer that its caller got, and each mark is given once.
So three states are rebuilt instead of trusted: that of a server that came back with older data, one that somebody
else changed, and one that was changed by a call whose answer was lost. From one shift to the next the mark is kept
in PostgreSQL (`engine/wakeups.end_shift`).
"""

from delivery.limiter.client import ACTIONS, Limiter
from delivery.limiter.values import (
    Ask,
    Away,
    Day,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Memory,
    Met,
    Noted,
    Unit,
    Use,
    Wait,
    WrongClock,
)

__all__ = [
    "ACTIONS",
    "Ask",
    "Away",
    "Day",
    "Done",
    "Forgotten",
    "Granted",
    "LeaseLost",
    "Limiter",
    "Memory",
    "Met",
    "Noted",
    "Unit",
    "Use",
    "Wait",
    "WrongClock",
]
