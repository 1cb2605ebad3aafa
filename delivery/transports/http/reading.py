"""Reads data that others wrote: a value that is missing or of an unexpected type counts as absent.

A service may leave a field out, send null for it, or send an object where it used to send a string; none of that
may break a webhook or lose a message's id.
"""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

from delivery.transports.base import sendable


def parsed(body: bytes) -> Any:
    """Return the JSON in the body; None where there is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def at(value: object, *path: str | int) -> Any:
    """Return the value at the end of the path; None if any step of it is missing."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


def text(value: object, *path: str | int) -> str:
    """Return the string there, or ''; without half characters and NUL, which no database takes."""
    found = at(value, *path)
    return sendable(found).replace("\x00", "") if isinstance(found, str) else ""


def items(value: object, *path: str | int) -> list[Any]:
    """Return the list there; an object alone is a list of one."""
    found = at(value, *path)
    if isinstance(found, list):
        return found
    return [found] if isinstance(found, dict) else []


def moment(seconds: object, *, otherwise: datetime) -> datetime:
    """Return a time given in seconds since 1970, as a number or as its digits."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC)  # type: ignore[arg-type]  # refused below
    except (TypeError, ValueError, OverflowError, OSError):
        return otherwise


def picture(data: str) -> bytes:
    """Return a PNG given in base64, also behind `data:image/png;base64,`; empty where there is none."""
    try:
        return base64.b64decode(data.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        return b""
