"""Reads what WAHA says of WhatsApp's own limits: `capping` (a quota of new chats) and `timelock` (a lock of them).

The fields of `timelock` are not documented, and its engines differ: whatever reads as an end is taken for it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from delivery.transports.base import OwnLimits
from delivery.transports.http.reading import at, text

CAPPED = "CAPPED"
ENDS = ("end", "until", "expir")  # parts of the names of fields that hold an end
ON = ("active", "locked", "enabled")  # and of those that say whether there is a lock
LONGEST_NUMBER = 20  # digits
MILLISECONDS = 10**11  # a larger number of seconds would be thousands of years ahead


def read(capping: object, timelock: object) -> OwnLimits:
    """Return the limits in both answers; None is an answer that says nothing."""
    total, used = _count(at(capping, "totalQuota")), _count(at(capping, "usedQuota"))
    if text(capping, "cappingStatus").upper() == CAPPED:
        total = used = max(total or 0, used or 0)
    until = _end(timelock)
    return OwnLimits(
        new_chats=total,
        new_chats_used=used or 0,
        new_chats_until=_moment(at(capping, "cycleEnd")) if total is not None else None,
        locked=_says_on(timelock, until),
        locked_until=until,
        said={
            name: told
            for name, told in (("capping", capping), ("timelock", timelock))
            if told not in (None, {})
        },
    )


def _count(value: object) -> int | None:
    """Return a number of chats; None for -1, which is "no quota", and for anything that is no number."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= LONGEST_NUMBER:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _says_on(timelock: object, until: datetime | None) -> bool:
    """Decide whether the answer tells of a lock: it says so, or names an end without denying it."""
    said = [value for name, value in _fields(timelock) if isinstance(value, bool) and _names(name, ON)]
    return said[0] if said else until is not None


def _end(timelock: object) -> datetime | None:
    ends = (_moment(value) for name, value in _fields(timelock) if _names(name, ENDS))
    return max((end for end in ends if end is not None), default=None)


def _names(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


def _fields(found: object) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, and of the objects in it."""
    if isinstance(found, Mapping):
        for name, value in found.items():
            if isinstance(value, Mapping):
                yield from _fields(value)
            else:
                yield str(name), value


def _moment(value: object) -> datetime | None:
    """Return a time in seconds or milliseconds since 1970, or as ISO 8601; None for anything else, and for 0."""
    if isinstance(value, str):
        if not value.isdecimal() or len(value) > LONGEST_NUMBER:
            return _iso(value)
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    try:
        return datetime.fromtimestamp(value / 1000 if value > MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _iso(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
