"""The service that a transport is tested against: it can be made to misbehave, and shows what it received."""

import hashlib
import io
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import ClassVar, Self

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    ServerError,
    TryAgain,
    Unknown,
)
from delivery.transports.base import Media, MediaRef, Message, Timeouts, Transport

SECRET = "wholly-secret-4711"
PATIENT = Timeouts(connect=5, total=20, upload=20)
HASTY = Timeouts(connect=0.4, total=0.8, upload=0.8)
WORDS = "The bus leaves at nine."
PICTURE = b"\x89PNG\r\n\x1a\n not really"


class Scenario(StrEnum):
    """The ways in which a service can treat every message."""

    RATE_LIMITS = auto()  # after one accepted message
    NOT_CONNECTED = auto()
    BLOCKED = auto()
    REJECTS = auto()  # the harness's `refused_address`
    REFUSES_FOR_NOW = auto()  # fails, and says that nothing was accepted
    BREAKS_AFTER = auto()  # accepts, then fails
    HANGS = auto()  # accepts, then never answers
    CUTS = auto()  # accepts, then closes the connection in the middle of the answer
    GARBAGE = auto()  # accepts, then answers something that nobody can read


MEANS: dict[Scenario, type[Outcome]] = {
    Scenario.RATE_LIMITS: RateLimited,
    Scenario.NOT_CONNECTED: NotConnected,
    Scenario.BLOCKED: AccountBlocked,
    Scenario.REJECTS: Rejected,
    Scenario.REFUSES_FOR_NOW: ServerError,
    Scenario.BREAKS_AFTER: Unknown,
    Scenario.HANGS: Unknown,
    Scenario.CUTS: Unknown,
    Scenario.GARBAGE: Unknown,
}
# Of services without a session that could be down: they say only that they take nothing at the moment.
NO_SESSION: dict[Scenario, type[Outcome]] = {Scenario.NOT_CONNECTED: ServerError}
# Of mail servers: it is the recipient who cannot get it for now.
OF_MAIL: dict[Scenario, type[Outcome]] = {Scenario.REFUSES_FOR_NOW: TryAgain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One message as the service saw it arrive."""

    address: str
    text: str  # at least the first 100 characters; of media: the caption
    chars: int
    key: str = ""
    media: str = ""  # the handle; where there are no handles, the SHA-256 of the content
    filename: str = ""  # where it comes with the message


class Harness(ABC):
    """A real service, and how to look behind it; entered and left as an async context manager."""

    kind: ClassVar[type[Transport]]
    scenarios: ClassVar[frozenset[Scenario]] = frozenset(Scenario)  # those into which it can be brought
    address: ClassVar[str]
    refused_address: ClassVar[str] = ""
    means: ClassVar[Mapping[Scenario, type[Outcome]]] = {}  # where its service means something else
    takes_key: ClassVar[bool] = False  # the key travels with a message, whether it saves from doubles or not
    longest_wait: ClassVar[float | None] = None  # seconds that it may ask for; None: it never names a wait

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    @abstractmethod
    def credentials(self) -> dict[str, str]:
        """Return the credentials of one account, the same throughout a test; each secret is or contains SECRET."""

    @abstractmethod
    def credentials_on(self, port: int) -> dict[str, str]:
        """Return the credentials of the same account on a service at another port of this machine."""

    @abstractmethod
    def wrong_credentials(self) -> dict[str, str]:
        """Return credentials with a wrong secret, which contains SECRET too."""

    @abstractmethod
    def enter(self, scenario: Scenario) -> None:
        """Behave as the scenario says, from the next message on."""

    @abstractmethod
    def received(self) -> list[Received]:
        """Return the messages that reached a recipient, in their order."""

    @abstractmethod
    def uploads(self) -> int:
        """Return how many files were accepted."""


@contextmanager
def port_that_never_answers() -> Iterator[int]:
    """A port whose queue of connections is full: a connection attempt gets neither a yes nor a no."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@contextmanager
def port_without_server() -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def photo(content: bytes = PICTURE) -> Media:
    return Media(
        sha256=hashlib.sha256(content).hexdigest(),
        filename="Fête été.png",
        content_type="image/png",
        open=lambda: io.BytesIO(content),
    )


def picture(address: str, media: Media | None = None, *, handle: str | None = None) -> Message:
    """A message with a photo, by its handle or with the file itself."""
    media = media or photo()
    reference = MediaRef(
        sha256=media.sha256,
        filename=media.filename,
        content_type=media.content_type,
        open=media.open,
        handle=handle,
    )
    return Message(address=address, kind="media", text="Schön! 👋🏽", media=reference)
