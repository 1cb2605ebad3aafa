"""Permits to send: when an account may send its next messages, over all its limits at once (SPEC P2 to P8).

One round trip to Redis per question; limiter.lua decides there, so that any number of workers agree. Redis
only remembers: the ledger is the truth, and a limiter that forgot is rebuilt from it before anything is
granted. Answers are values.

A client that repeats a call whose answer was lost may be granted twice. What it never heard of stays open, so
that it counts for too much and never for too little, until `adopt`.
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
    Noted,
    Unit,
    Use,
    Wait,
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
    "Noted",
    "Unit",
    "Use",
    "Wait",
]
