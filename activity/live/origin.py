"""Refuses sockets that are not opened by our own pages.

A browser sends cookies with a socket that any page opens, so only the origin tells our pages from others. Comparing
host names alone would accept a page on another port of the same machine.
"""

from typing import Any
from urllib.parse import urlsplit

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class SameOrigin:
    """Refuses a socket to a host name that is not ours, or whose origin is neither this host nor trusted."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if trusted(dict(scope["headers"])):
            return await self.application(scope, receive, send)
        return await Refusal()(scope, receive, send)


class Refusal(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        await self.close()


def trusted(headers: dict[bytes, bytes]) -> bool:
    """Return whether the socket was opened at a name of ALLOWED_HOSTS, by a page of that name or a trusted one.

    Without the check of the name, a stranger's page whose name leads to our address would be its own host and origin.
    """
    origin = headers.get(b"origin", b"").decode("latin1")
    host = headers.get(b"host", b"").decode("latin1").lower()
    if not _is_ours(host):
        return False
    return _place(origin) == host or origin in settings.CSRF_TRUSTED_ORIGINS


def _is_ours(host: str) -> bool:
    name, _ = split_domain_port(host)
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS)


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
