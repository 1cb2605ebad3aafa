"""Translates `DATABASE_URL` into Django's settings."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def database_settings(url: str) -> dict[str, Any]:
    """Return Django's settings for a PostgreSQL address, sockets included.

    A socket is `postgresql://user@/name?host=/folder`, as libpq has it; other parameters are libpq's options. Several
    servers, a primary and its standbys, are separated by commas.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    servers = [_server(each) for each in parts.netloc.rpartition("@")[2].split(",")]
    hosts, ports = [host for host, _ in servers], [port for _, port in servers]
    return {
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", ",".join(hosts)),
        "PORT": options.pop("port", ",".join(ports) if any(ports) else ""),
        "OPTIONS": options,
    }


def _server(text: str) -> tuple[str, str]:
    """Return the host and the port of one server; the port may be missing."""
    parts = urlsplit(f"//{text}")
    return parts.hostname or "", str(parts.port or "")
