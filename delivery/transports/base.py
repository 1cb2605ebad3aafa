"""The contract between the engine and whatever carries a message.

A transport turns one message into one request and the answer into one `Outcome`. It never sleeps, never tries
again and never touches the database: how often and when is the engine's business, and what an outcome does to
the target, the account and the run is decided in `delivery/retry.py`.

What a service did not do for us comes back as an `Outcome`; exceptions are for callers' mistakes and for
questions (who are the recipients? which code pairs the account?) that could not be answered.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, ClassVar, Literal, final
from unicodedata import category

import aiohttp

from delivery.outcomes import Outcome, Sent
from delivery.reach import ANYWHERE, Reach

Credentials = Mapping[str, str]
MAX_DETAIL = 200


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


class WebhookRefusedError(TransportError):
    """A webhook that is not the service's own word of now: badly signed, stale, or not to be read."""


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
    pairing: bool = False  # `connect` starts a session, `pairing` gives a code to scan, `disconnect` logs out
    pairing_code: bool = False  # `pairing_code` gives a code to type instead
    polling: bool = False  # `poll` fetches what came in, where no webhook reports it
    webhooks: bool = False  # `parse_webhook` reads what the service reports
    receipts: bool = False  # webhooks report what became of a message
    number_check: bool = False  # `check_number` says whether an address exists
    actions: frozenset[str] = frozenset({"message"})  # what `Message.action` may be


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialField:
    """One field of the form in which an operator enters credentials."""

    name: str
    label: str
    secret: bool = False
    place: bool = False  # where or how secrets travel: with another one, stored secrets are asked for again
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

    def __post_init__(self) -> None:
        # Names go into headers, where a line break would begin another one.
        object.__setattr__(self, "filename", _one_line(self.filename) or "file")


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
    unsubscribe_url: str = ""  # of e-mails: where the recipient opts out

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
    """A code that connects the account when its owner scans it: what to draw, or the service's own picture."""

    code: str = ""  # what the QR code says
    image: bytes = b""  # a PNG, of services that give no code
    expires_in: float  # seconds

    def __post_init__(self) -> None:
        if not self.code and not self.image:
            raise ValueError("A pairing has a code or an image.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where the service is to report, and with which secret it is to sign (or which header to send)."""

    url: str = field(repr=False)  # has an unguessable part
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A webhook as it arrived. `secret` is the one of `Webhook`; a kind may have its own among its credentials."""

    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: bytes = field(repr=False)  # as it came, since that is what was signed
    secret: str = field(repr=False)
    received_at: datetime


# Every event has an `event_id` that is the same whenever the service repeats it, and that no other event of the
# account has: it is what makes handling happen once.


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """Somebody wrote to the account."""

    event_id: str
    provider_id: str
    sender: str
    chat: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a message that was sent. Those of one message and state share an id: one is enough."""

    event_id: str
    provider_id: str
    state: ReceiptState
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged:
    """The account connected, disconnected or was blocked."""

    event_id: str
    state: AccountState
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstContactsLocked:
    """The service stops messages to those whom the account never wrote to; known chats still work."""

    event_id: str
    at: datetime
    until: datetime | None = None  # where the service says so
    reason: str = ""


InboundEvent = Inbound | Receipt | SessionChanged | FirstContactsLocked


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What came in, and where to go on the next time."""

    events: tuple[InboundEvent, ...]
    since: str


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
    """One account's way to its service. Kinds that speak HTTP start from `http.transport.HttpTransport`."""

    kind: ClassVar[str]
    label: ClassVar[str]
    about: ClassVar[str]  # a sentence for whoever chooses: what it is and what it takes
    channels: ClassVar[frozenset[str]]  # on which an account can use it
    default_capabilities: ClassVar[Capabilities]
    credential_fields: ClassVar[tuple[CredentialField, ...]]

    def __init__(
        self,
        credentials: Credentials,
        session: aiohttp.ClientSession | None,
        *,
        timeouts: Timeouts | None = None,
        reach: Reach = ANYWHERE,
    ) -> None:
        self.credentials = checked(credentials, self.credential_fields)
        self._secrets = [self.credentials[each.name] for each in self.credential_fields if each.secret]
        self._session = session
        self.timeouts = timeouts or Timeouts()
        self.reach = reach  # of connections that it opens by itself; those of the session have their own
        self.prepare()

    def prepare(self) -> None:
        """Take out of the credentials what every request needs; raises CredentialsError."""
        return

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("A transport that was made without a session only reads webhooks.")
        return self._session

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

    async def log_in(self) -> Credentials | None:
        """Credentials to keep from now on, where those given buy better ones (a token for a password).

        None: they are to be kept as they are. Raises UnansweredError.
        """
        return None

    async def connect(self, webhook: Webhook | None) -> AccountState:  # noqa: ARG002 (for kinds that have it)
        """Make or start the session and say where to report, and what state that led to; safe to repeat.

        Asks for nothing where the account is connected already, but where to report is told again. Raises
        UnansweredError. A kind without sessions only says where to report, if its service can be told.
        """
        return await self.status()

    async def disconnect(self) -> None:
        """Log out: the service forgets the pairing. Logging out twice is no error; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} has no session to log out of.")

    async def pairing(self) -> Pairing:
        """The code to scan now; raises UnansweredError, also when there is nothing to scan."""
        raise NotOfferedError(f"{self.label} needs no pairing.")

    async def pairing_code(self, phone: str) -> str:  # noqa: ARG002
        """A code to type into the phone with that number (E.164) instead of scanning; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot pair by a code to type.")

    async def check_number(self, address: str) -> bool:  # noqa: ARG002
        """Whether the service knows anybody at this address; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot check numbers.")

    async def poll(self, since: str) -> Polled:  # noqa: ARG002
        """What came in after `since`, the last answer's; empty the first time, which brings nothing of the past.

        Returns at once. The caller keeps `since` with the events, in one transaction. Raises UnansweredError.
        """
        raise NotOfferedError(f"{self.label} cannot be asked what came in.")

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:  # noqa: ARG002
        """What the service reports; raises WebhookRefusedError unless the request is surely its own and fresh.

        Needs no session. A report that means nothing to us is an empty list, not an error.
        """
        raise NotOfferedError(f"{self.label} sends no webhooks.")

    def webhook_challenge(self, query: Mapping[str, str], secret: str) -> str:  # noqa: ARG002
        """What to answer to the GET by which a service checks the address; raises WebhookRefusedError."""
        raise NotOfferedError(f"{self.label} asks no questions about webhooks.")

    def safe(self, text: str) -> str:
        """A service's own words, short, on one line, and without our secrets, which some services repeat."""
        for secret in self._secrets:
            # A shorter one is in half of all words, and no secret.
            if len(secret) >= 4:
                text = text.replace(secret, "***")
        return " ".join(sendable(text).replace("\x00", "").split())[:MAX_DETAIL]

    async def close(self) -> None:
        """Let go of what this account alone holds open; it is opened again when needed."""
        return

    @final
    def __repr__(self) -> str:
        # Credentials must never reach a log by way of a traceback.
        return f"<{type(self).__name__}>"


def sendable(text: str) -> str:
    """Without half characters, which no encoding has a place for and some services break on."""
    return text.encode(errors="replace").decode()


def _one_line(text: str) -> str:
    return "".join(letter for letter in text if category(letter) not in {"Cc", "Cs", "Zl", "Zp"})


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
