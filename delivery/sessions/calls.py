"""Guards calls to services outside: every question that ordinary code puts to a service goes through here.

A service may hang for as long as our timeouts allow. So no call holds a database connection meanwhile: a few hanging
calls would use up the pool that every page needs. Each person who looks at pages gets a few calls at once, and all
people together get a number that leaves threads for everything else.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus

from django.conf import settings
from django.db import connection
from django.http import HttpRequest

from config.shares import Full, Shares

LONGEST_REQUEST = (
    30.0  # seconds that one request may spend on calls, for example an admin action on many accounts
)
RETRY_SECONDS = 10


class BusyError(Exception):
    """Raised when too many calls are under way. The text tells a person what to do; nothing was asked."""

    def __init__(self, sentence: str, *, status: HTTPStatus) -> None:
        super().__init__(sentence)
        self.status = status


class OpenTransactionError(RuntimeError):
    """Raised for a bug: a call inside a transaction would hold its locks for as long as the service hangs."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A web request that is being answered, and when it began."""

    request: HttpRequest
    began: float = field(default_factory=time.monotonic)


_visit: ContextVar[Visit | None] = ContextVar("visit", default=None)


@contextmanager
def on_behalf_of(request: HttpRequest) -> Iterator[None]:
    """Count the calls made in this context as the request's."""
    token = _visit.set(Visit(request))
    try:
        yield
    finally:
        _visit.reset(token)


@cache
def shares() -> Shares:
    """Return the places of this process for calls from web requests."""
    return Shares(total=settings.OUTWARD_CALLS, each=settings.OUTWARD_CALLS_PER_PERSON)


@contextmanager
def calling() -> Iterator[None]:
    """Hold a place for a call, or raise BusyError. A worker's tasks have shares of their own and need no place here."""
    visit = _visit.get()
    if visit is None:
        yield
        return
    if time.monotonic() - visit.began > LONGEST_REQUEST:
        raise BusyError(
            "This took too long, so the rest was not tried. Choose fewer accounts at once.",
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    with _place(visit.request.user.pk):
        yield


@contextmanager
def _place(person: int | None) -> Iterator[None]:
    if full := shares().take(person):
        raise _busy(full)
    try:
        yield
    finally:
        shares().give_back(person)


def _busy(full: Full) -> BusyError:
    if full is Full.OWN:
        return BusyError(
            "You are already waiting for several services. Wait until they have answered, then try again.",
            status=HTTPStatus.TOO_MANY_REQUESTS,
        )
    return BusyError(
        "Too many people are waiting for services right now. Try again in a few seconds.",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
    )


def release_connection() -> None:
    """Return the database connection to the pool; the next query takes another one.

    Raise OpenTransactionError inside a transaction. The transaction around a whole test does not count: there the
    connection stays.
    """
    blocks = connection.atomic_blocks
    if any(not getattr(block, "_from_testcase", False) for block in blocks):
        raise OpenTransactionError(
            "A service is asked inside a transaction. Ask before it begins or after it."
        )
    if not blocks:
        connection.close()
