"""Reads the sandbox's log as evidence: what was delivered, what was delivered twice, and the highest speed.

Tests and benchmarks judge by this log, never by what the sender believes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from sandbox.log import Line, read

__all__ = ["Line", "deliveries", "doubles", "read", "times", "uploads", "worst_window"]


def deliveries(path: Path, account: str | None = None) -> list[Line]:
    """Return every message that reached its recipient, in order of receipt."""
    return [line for line in _messages(path, account) if line["delivered"]]


def uploads(path: Path, account: str | None = None) -> list[Line]:
    """Return every media file that was accepted."""
    return [
        line
        for line in read(path)
        if line["kind"] == "media" and line["delivered"] and account in {None, line["account"]}
    ]


def doubles(path: Path, account: str | None = None) -> dict[tuple[str, str, str], int]:
    """Return messages that were delivered more than once: (account, recipient, key) and how often.

    The key names one part for one recipient; a message without a key is identified by its content.
    """
    seen = Counter(
        (line["account"], line["to"], line["key"] or f"{line['hash']} {line['media']}")
        for line in deliveries(path, account)
    )
    return {what: often for what, often in seen.items() if often > 1}


def times(path: Path, *, delivered: bool = False) -> dict[str, list[int]]:
    """Return when each account's messages were received, in milliseconds; or only of those delivered."""
    by_account: defaultdict[str, list[int]] = defaultdict(list)
    for line in _messages(path, None):
        if line["delivered"] or not delivered:
            by_account[line["account"]].append(line["at"])
    return dict(by_account)


def worst_window(moments: Iterable[int], ms: int) -> int:
    """Return the most events in any window of `ms` milliseconds; two exactly `ms` apart share no window."""
    ordered = sorted(moments)
    worst = first = 0
    for last, moment in enumerate(ordered):
        while ordered[first] <= moment - ms:
            first += 1
        worst = max(worst, last - first + 1)
    return worst


def _messages(path: Path, account: str | None) -> Iterable[Line]:
    return (line for line in read(path) if line["kind"] == "message" and account in {None, line["account"]})
