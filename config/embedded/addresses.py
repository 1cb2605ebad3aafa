"""Translates `DATABASE_URL` into Django's settings."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def database_settings(url: str) -> dict[str, Any]:
    """Return Django's settings for a PostgreSQL address, sockets included.

    A socket is `postgresql://user@/name?host=/folder`, as libpq has it; other parameters are libpq's options.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    return {
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", parts.hostname or ""),
        "PORT": options.pop("port", str(parts.port or "")),
        "OPTIONS": options,
    }
