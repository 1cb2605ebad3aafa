"""The contract between the engine and whatever carries a message.

A transport turns one message into one request and the answer into one `Outcome`. It never sleeps, never tries
again and never touches the database: how often and when is the engine's business, and what an outcome does to
the target, the account and the run is decided in `delivery/retry.py`.

What a service did not do for us comes back as an `Outcome`; exceptions are for callers' mistakes and for
questions (who are the recipients? which code pairs the account?) that could not be answered.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, ClassVar, Literal, final

import aiohttp

from delivery.outcomes import Outcome, Sent

Credentials = Mapping[str, str]


class TransportError(Exception):
    """The root of what a transport raises."""


class NotOfferedError(TransportError):
    """The caller asked for something that the transport's capabilities say it has not."""


class CredentialsError(TransportError):
    """The credentials cannot be used; the text names the field, never its value."""


class UnansweredError(TransportError):
    """A question to the service failed; `outcome` says how, in the words of a failed send."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("" if isinstance(outcome, Sent) else outcome.reason)
        self.outcome = outcome


class AccountState(StrEnum):
    """What the service says about the account."""

    WORKING = "working"  # may send
    PAIRING = "pairing"  # waits for its code to be scanned
    STOPPED = "stopped"  # known, but not connected
    BLOCKED = "blocked"  # banned, logged out, or the credentials are refused
    UNREACHABLE = "unreachable"  # the service itself does not answer


class ReceiptState(StrEnum):
    """How far a message got, as the service reports it later."""

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a transport can do; callers ask this, never the kind."""

    idempotent: bool = False  # the same key twice delivers once
    media_handles: bool = False  # `upload` gives a handle that many messages reuse
    groups: bool = False  # `recipients` lists them
    pairing: bool = False  # `pairing` gives a code to scan
    receipts: bool = False  # webhooks report what became of a message
    number_check: bool = False
    actions: frozenset[str] = frozenset({"message"})  # what `Message.action` may be


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialField:
    """One field of the form in which an operator enters credentials."""

    name: str
    label: str
    secret: bool = False
    required: bool = True
    help: str = ""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A stored file, known by its content."""

    sha256: str
    filename: str
    content_type: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef(Media):
    """A file as part of a message: by the handle that `upload` gave, where the transport has handles."""

    handle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One rendered part for one recipient."""

    address: str
    kind: Literal["text", "media"]
    text: str = ""  # of media: the caption
    media: MediaRef | None = None
    action: str = "message"
    subject: str = ""

    def __post_init__(self) -> None:
        if (self.kind == "media") != (self.media is not None):
            raise ValueError("A media message has media, a text message has none.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """The service took a file and will send it by this handle."""

    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """Somebody whom the account can reach."""

    address: str
    name: str
    kind: Literal["group", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A code that connects the account when its owner scans it."""

    code: str
    expires_in: float  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """Somebody wrote to the account."""

    provider_id: str
    sender: str
    chat: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a message that was sent."""

    provider_id: str
    state: ReceiptState
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged:
    """The account connected, disconnected or was blocked."""

    state: AccountState
    reason: str = ""


InboundEvent = Inbound | Receipt | SessionChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds. A connect timeout must come first, or it could not be told from a read timeout."""

    connect: float = 5.0
    total: float = 20.0
    upload: float = 120.0

    def __post_init__(self) -> None:
        if not 0 < self.connect < min(self.total, self.upload):
            raise ValueError("The connect timeout must be shorter than the others.")


class Transport(ABC):
    """One account's way to its service. Kinds that speak HTTP start from `http_transport.HttpTransport`."""

    kind: ClassVar[str]
    label: ClassVar[str]
    default_capabilities: ClassVar[Capabilities]
    credential_fields: ClassVar[tuple[CredentialField, ...]]

    def __init__(
        self, credentials: Credentials, session: aiohttp.ClientSession, *, timeouts: Timeouts | None = None
    ) -> None:
        self.credentials = checked(credentials, self.credential_fields)
        self.session = session
        self.timeouts = timeouts or Timeouts()

    @property
    def capabilities(self) -> Capabilities:
        """What this account can do; a kind whose credentials decide overrides it."""
        return self.default_capabilities

    @abstractmethod
    async def send(self, message: Message, key: str) -> Outcome:
        """Send one part; `key` is stable per target and part. Never raises for what the service does."""

    @abstractmethod
    async def status(self) -> AccountState:
        """What the service says about the account now."""

    async def upload(self, media: Media) -> Uploaded | Outcome:  # noqa: ARG002 (for kinds that have it)
        """Hand over a file once, to be sent by its handle; an Outcome when it was not taken."""
        raise NotOfferedError(f"{self.label} has no media handles.")

    def recipients(self) -> AsyncIterator[Contact]:
        """The groups of the account; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot list recipients.")

    async def pairing(self) -> Pairing:
        """The code to scan now; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} needs no pairing.")

    def parse_webhook(
        self,
        headers: Mapping[str, str],  # noqa: ARG002 (for kinds that have it)
        body: bytes,  # noqa: ARG002
    ) -> list[InboundEvent]:
        """What the service reports, after its signature was checked."""
        raise NotOfferedError(f"{self.label} sends no webhooks.")

    @final
    def __repr__(self) -> str:
        # Credentials must never reach a log by way of a traceback.
        return f"<{type(self).__name__}>"


def checked(credentials: Credentials, fields: tuple[CredentialField, ...]) -> Credentials:
    """The credentials that the fields ask for, defaults filled in; raises CredentialsError."""
    return {
        field.name: _checked(credentials.get(field.name, "").strip() or field.default, field)
        for field in fields
    }


def _checked(value: str, field: CredentialField) -> str:
    if field.required and not value:
        raise CredentialsError(f"{field.label} is missing.")
    if not value.isprintable():
        raise CredentialsError(f"{field.label} holds a character that cannot be sent.")
    if field.choices and value and value not in dict(field.choices):
        raise CredentialsError(f"{field.label} has a value that it cannot have.")
    return value
