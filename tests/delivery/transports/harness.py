"""The service that a transport is tested against: it can be made to misbehave, and shows what it received."""

import hashlib
import io
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import ClassVar, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

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
from delivery.transports.base import Fetching, FileAddress, Media, MediaRef, Message, Timeouts, Transport

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


class Hearing(Fetching):
    """Keeps what a transport tells of the fetching of a file."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def worked(self) -> None:
        self.heard.append(("worked", ""))

    def failed(self, words: str) -> None:
        self.heard.append(("failed", words))

    def in_doubt(self, words: str) -> None:
        self.heard.append(("in doubt", words))

    @property
    def verdicts(self) -> list[str]:
        return [verdict for verdict, _ in self.heard]


TOKEN = "s3cret-t0ken"


@asynccontextmanager
async def shelf(*files: Media) -> AsyncIterator["Shelf"]:
    """Serve files over HTTP, as Paceline serves them to gateways."""
    served = Shelf(files)
    server = TestServer(served.app(), host="127.0.0.1")
    await server.start_server(access_log=None)
    served.port = server.port or 0
    try:
        yield served
    finally:
        await server.close()


class Shelf:
    def __init__(self, files: Iterable[Media]) -> None:
        self.files = {file.sha256: file for file in files}
        self.fetched: list[str] = []
        self.gone = False  # answers 410 to everything
        self.port = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(f"/files/{TOKEN}/{{sha256}}/file.png", self._serve)
        return app

    def url(self, file: Media) -> str:
        return f"http://127.0.0.1:{self.port}/files/{TOKEN}/{file.sha256}/file.png"

    async def _serve(self, request: web.Request) -> web.Response:
        self.fetched.append(request.match_info["sha256"])
        if self.gone:
            return web.Response(status=410)
        file = self.files[request.match_info["sha256"]]
        with file.open() as content:
            return web.Response(body=content.read(), content_type=file.content_type)


def picture(
    address: str, media: Media | None = None, *, handle: str | None = None, at: FileAddress | None = None
) -> Message:
    """A message with a photo: by its handle, at its address, or with the file itself."""
    media = media or photo()
    reference = MediaRef(
        sha256=media.sha256,
        filename=media.filename,
        content_type=media.content_type,
        open=media.open,
        handle=handle,
        address=at,
    )
    return Message(address=address, kind="media", text="Schön! 👋🏽", media=reference)
