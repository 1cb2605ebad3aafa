"""Puts work into the queue; where the queue does not answer, the start is delayed, and the person who asked is told.

Nothing is lost meanwhile: the work is in the database, where the tick and the sweeps find it.
"""

from collections.abc import Callable
from contextvars import ContextVar

import structlog
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

DELAYED = "Saved. Sending starts as soon as the queue answers again."

_told: ContextVar[list[str] | None] = ContextVar("told", default=None)


def publish(send: Callable[[], object], *, delayed: str = "") -> bool:
    """Call `send`; return whether the queue took it. If it did not, the page in work shows `delayed`."""
    try:
        send()
    except (RedisError, OperationalError):
        log.warning("broker_away", exc_info=True)
        told = _told.get()
        if told is not None and delayed and delayed not in told:
            told.append(delayed)
        return False
    return True


class SayDelays:
    """Adds a message to the page about work that could not be started at once; runs inside the message middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        told: list[str] = []
        token = _told.set(told)
        try:
            response = self.get_response(request)
        finally:
            _told.reset(token)
        for sentence in told:
            messages.warning(request, sentence)
        return response
