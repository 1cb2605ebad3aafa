"""Where a change comes from: the door, the address and the person, carried by a context variable.

The middleware sets it for a request, the API for a key, a command for itself. Tasks of workers set nothing: what they
change, the system changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import TextChoices


class Door(TextChoices):
    PAGE = "page", "Page"
    ADMIN = "admin", "Admin"
    KEY = "key", "API key"
    PUSH = "push", "Button of a notification"
    LINK = "link", "Link in a message"
    COMMAND = "command", "Command"
    SYSTEM = "system", "System"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a change comes from. `person` may be a lazy user: it is only read when something is recorded."""

    door: Door
    address: str = ""
    via: str = ""  # the key or the command
    person: Any = None


SYSTEM = Origin(door=Door.SYSTEM)
_origin: ContextVar[Origin] = ContextVar("paceline_origin", default=SYSTEM)


def origin() -> Origin:
    """Return where the change that is being made comes from."""
    return _origin.get()


@contextmanager
def coming_from(where: Origin) -> Iterator[None]:
    """Let everything that is recorded inside come from there."""
    token = _origin.set(where)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def through_key(person: Any, name: str) -> Iterator[None]:
    """Let everything that is recorded inside come from a key of the API, at the address of the request."""
    with coming_from(replace(origin(), door=Door.KEY, via=name, person=person)):
        yield
