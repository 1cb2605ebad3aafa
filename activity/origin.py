"""Sockets are opened by our own pages alone.

A browser sends cookies with a socket that any page opens, so that its origin is the only thing that tells them
apart. Host names alone would let in a page on another port of the same machine.
"""

from typing import Any
from urllib.parse import urlsplit

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings


class SameOrigin:
    """Refuses a socket whose origin is neither this host nor in CSRF_TRUSTED_ORIGINS."""

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
    origin = headers.get(b"origin", b"").decode("latin1")
    host = headers.get(b"host", b"").decode("latin1")
    same = bool(host) and urlsplit(origin).netloc.lower() == host.lower()
    return same or origin in settings.CSRF_TRUSTED_ORIGINS
