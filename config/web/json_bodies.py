"""Reads the JSON that a browser sends, and refuses what PostgreSQL could not store."""

import json
from typing import Any

MOST_BYTES = 65_536


def read_json(body: bytes) -> Any:
    """Return the value in the body. Raise ValueError where it is not JSON, too long, too deep, or not storable."""
    if len(body) > MOST_BYTES:
        raise ValueError("The body is too long.")
    try:
        found = json.loads(body)
        require_storable(found)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error
    return found


def require_storable(value: object) -> None:
    """Raise ValueError where a text of the value has a NUL or half a character, which PostgreSQL does not store."""
    if isinstance(value, str):
        value.encode()  # half a character raises a ValueError
        if "\x00" in value:
            raise ValueError("The JSON has a NUL character.")
    elif isinstance(value, list | dict):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            require_storable(each)
