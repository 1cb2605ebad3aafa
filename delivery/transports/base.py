"""The contract between the engine and the transports that carry messages.

A transport turns one message into one request and the answer into one `Outcome`. It never sleeps, never tries
again and never touches the database: the engine decides how often and when, and `delivery/retry.py` decides what
an outcome does to the target, the account and the run.

A failure of a service is returned as an `Outcome`; exceptions are for callers' mistakes and for questions (who are
the recipients? which code pairs the account?) that could not be answered.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, ClassVar, Literal, final
from unicodedata import category

import aiohttp

from delivery.outcomes import Outcome, Sent
from delivery.transports.networks.allowed import ANYWHERE, AllowedNetworks

Credentials = Mapping[str, str]
MAX_DETAIL = 200
MAX_READ = 4000  # characters of a service's words about a failure; the rest is a web page or a stack trace

# Text that services send by mistake: the page of a proxy, the frames of a stack.
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,20}(?:\s[^<>]{0,300})?/?>")
_STACK = re.compile(r"\n[ \t]{0,20}(?:at |File \")|Traceback \(most recent call last\)")
# The address of a file, whose end is a key: gateways repeat it in their words about a download that failed.
FILES_PATH = "/files/"
_FILE_ADDRESS = re.compile(r"(/files/)[^\s\"'<>]+")


class TransportError(Exception):
    """The root of the errors that a transport raises."""


class NotOfferedError(TransportError):
    """Raised when the caller asks for something that the transport's capabilities do not include."""


class CredentialsError(TransportError):
    """Raised when the credentials cannot be used; the text names the field, never its value."""


class UnansweredError(TransportError):
    """Raised when a question to the service failed; `outcome` says how, in the words of a failed send.

    `silent` says that no answer came at all.
    """

    def __init__(self, outcome: Outcome, *, silent: bool = False) -> None:
        super().__init__("" if isinstance(outcome, Sent) else outcome.reason)
        self.outcome = outcome
        self.silent = silent


class WebhookRefusedError(TransportError):
    """Raised for a webhook that is not surely the service's own and fresh: badly signed, stale or unreadable."""


class AccountState(StrEnum):
    """The account's state as the service reports it."""

    WORKING = "working"  # may send
    STARTING = "starting"  # is starting: wait, the result is not known yet
    PAIRING = "pairing"  # waits for its code to be scanned
    STOPPED = "stopped"  # known, but not connected
    BLOCKED = "blocked"  # banned, logged out, or the credentials are refused
    UNREACHABLE = "unreachable"  # the service itself does not answer


class ReceiptState(StrEnum):
    """The progress of a message after it was sent, as the service reports it later."""

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"  # this message
    BOUNCED = "bounced"  # and every other to this address
    COMPLAINED = "complained"  # its recipient reported it as unwanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a transport; callers check these, never the kind."""

    idempotent: bool = False  # the same key twice delivers once
    media_handles: bool = False  # `upload` gives a handle that many messages reuse
    media_urls: bool = False  # a message may hold the address of its file, which the service then fetches
    groups: bool = False  # `recipients` lists the groups
    pairing: bool = False  # `connect` starts a session, `pairing` gives a code to scan, `disconnect` logs out
    pairing_code: bool = False  # `pairing_code` gives a code to type instead
    polling: bool = False  # `poll` fetches incoming messages, where no webhook reports them
    webhooks: bool = False  # `parse_webhook` reads the service's reports
    receipts: bool = False  # webhooks report whether a message arrived
    hidden_numbers: bool = False  # `number_behind` returns the number behind an address such as 77@lid
    number_check: bool = False  # `check_number` says whether an address exists
    typing: bool = False  # `start_typing` shows in a chat that the account is typing
    own_limits: bool = False  # `own_limits` says what the service allows the account by limits of its own
    actions: frozenset[str] = frozenset({"message"})  # the allowed values of `Message.action`


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialField:
    """One field of the form in which an operator enters credentials."""

    name: str
    label: str
    secret: bool = False
    place: bool = False  # decides where or how secrets are sent: a change asks for stored secrets again
    required: bool = True
    session: bool = False  # names, together with other fields marked so, the one session of the account
    help: str = ""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A stored file, identified by its content."""

    sha256: str
    filename: str
    content_type: str
    open: Callable[[], BinaryIO]

    def __post_init__(self) -> None:
        # Names go into headers, where a line break would begin another header.
        object.__setattr__(self, "filename", _one_line(self.filename) or "file")


class Fetching(ABC):
    """Hears how a service gets on with fetching files from their addresses."""

    @abstractmethod
    def worked(self) -> None:
        """Hear that the service took a message with an address."""

    @abstractmethod
    def failed(self, words: str) -> None:
        """Hear that the service said that it could not fetch the file, so that nothing left."""

    @abstractmethod
    def in_doubt(self, words: str) -> None:
        """Hear that a message with an address may have left or not: the fetching may be the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAddress:
    """Where the service can fetch a file for a while. Whoever knows the address can read the file."""

    url: str = field(repr=False)
    fetching: Fetching = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef(Media):
    """A file as part of a message: by the handle that `upload` gave, or with the address where it can be fetched."""

    handle: str | None = None
    address: FileAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One rendered part for one recipient."""

    address: str
    kind: Literal["text", "media"]
    text: str = ""  # the caption of a media message
    media: MediaRef | None = None
    action: str = "message"
    subject: str = ""
    unsubscribe_url: str = ""  # for e-mails: where the recipient opts out
    thread: tuple[str, ...] = ()  # for e-mails: the ids of our earlier ones that this one continues

    def __post_init__(self) -> None:
        if (self.kind == "media") != (self.media is not None):
            raise ValueError("A media message has media, a text message has none.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """The service took a file and will send it by this handle."""

    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A person or group that the account can reach."""

    address: str
    name: str
    kind: Literal["group", "person"]
    problem: str = ""  # a word or two why no message can be sent there
    members: tuple["Known", ...] = ()  # for a group: members whose hidden and open address the service tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Two addresses of one person that a service names together."""

    hidden: str  # such as 77@lid, behind which WhatsApp hides a number
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A code that connects the account when its owner scans it: a text to draw, or the service's own picture."""

    code: str = ""  # the content of the QR code
    image: bytes = b""  # a PNG, from services that give no code
    expires_in: float  # seconds

    def __post_init__(self) -> None:
        if not self.code and not self.image:
            raise ValueError("A pairing has a code or an image.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """The address to which the service has to report, and the secret to sign with (or the header to send)."""

    url: str = field(repr=False)  # has an unguessable part
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A webhook as it arrived. `secret` is the one of `Webhook`; a kind may have its own among its credentials."""

    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: bytes = field(repr=False)  # the raw bytes, since these were signed
    secret: str = field(repr=False)
    received_at: datetime


# Every event has an `event_id` that is the same whenever the service repeats it, and that no other event of the
# account has: through this id each event is handled once.


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message to the account, in words or with a file, which may be a reply.

    Not included are the account's own messages, reactions, edits, deletions, votes in polls, notices, and messages
    between programs. In a group, `chat` is the group and `sender` the member; else both are the person.
    """

    event_id: str
    provider_id: str
    sender: str
    chat: str
    text: str
    at: datetime
    direct: bool = False  # a room with this sender alone, whose words count for the room
    subject: str = ""  # the subject of an e-mail, where the sender wrote a new one
    answers: str = ""  # the id of our message that this answers, where only its recipient could know that id


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A report on a message that was sent. Receipts of one message and state share an id: one is enough."""

    event_id: str
    provider_id: str
    state: ReceiptState
    at: datetime
    reason: str = ""
    chat: str = ""  # the hidden address that the service uses for the recipient, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentTold:
    """A person told the service, not us, that they want no more messages from the account, or want them again."""

    event_id: str
    sender: str
    wanted: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLearnt:
    """The service named two addresses of one person together."""

    event_id: str
    known: Known


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged:
    """The account connected, disconnected or was blocked."""

    event_id: str
    state: AccountState
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstContactsLocked:
    """The service stops messages to people the account never wrote to; known chats still work."""

    event_id: str
    at: datetime
    until: datetime | None = None  # where the service says when
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimits:
    """A service's own limits of an account, as it tells them when asked; None and False where it tells of none.

    A quota of new chats holds for a cycle, of which `new_chats_used` are used up. A lock of new chats is believed where
    it is told; that there is none is not, since services have locked without telling.
    """

    new_chats: int | None = None
    new_chats_used: int = 0
    new_chats_until: datetime | None = None  # the end of the cycle
    locked: bool = False
    locked_until: datetime | None = None
    people_per_24_hours: int | None = None  # of all accounts of a portfolio together
    said: Mapping[str, object] = field(default_factory=dict)  # the answers themselves, for a look


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimitsChanged:
    """The service changed its own limits of the account: they have to be asked for again."""

    event_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDownAsked:
    """The service reports that the account sends too fast, some time after it took the messages."""

    event_id: str
    at: datetime
    reason: str = ""


InboundEvent = (
    Inbound
    | Receipt
    | ConsentTold
    | AddressLearnt
    | SessionChanged
    | FirstContactsLocked
    | SlowDownAsked
    | OwnLimitsChanged
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """The events that came in, and where to continue the next time."""

    events: tuple[InboundEvent, ...]
    since: str
    passed_over: tuple[str, ...] = ()  # for each message that is not an event, the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Timeouts in seconds. The connect timeout must be the shortest; else it could not be told from a read timeout."""

    connect: float = 5.0
    total: float = 20.0
    upload: float = 120.0

    def __post_init__(self) -> None:
        if not 0 < self.connect < min(self.total, self.upload):
            raise ValueError("The connect timeout must be shorter than the others.")


class Transport(ABC):
    """One account's connection to its service. Kinds that use HTTP start from `http.transport.HttpTransport`."""

    kind: ClassVar[str]
    label: ClassVar[str]
    about: ClassVar[str]  # a sentence for the person who chooses: what it is and what it needs
    channels: ClassVar[frozenset[str]]  # the channels of accounts that can use it
    default_capabilities: ClassVar[Capabilities]
    credential_fields: ClassVar[tuple[CredentialField, ...]]
    signs_in_as: ClassVar[str] = (
        ""  # for services that report with a name and our secret in the address, which a person enters there
    )
    proof: ClassVar[str] = (
        ""  # for kinds with webhooks: how reports are verified, and what to do if that fails
    )

    def __init__(
        self,
        credentials: Credentials,
        session: aiohttp.ClientSession | None,
        *,
        timeouts: Timeouts | None = None,
        networks: AllowedNetworks = ANYWHERE,
        owner: int = 0,
    ) -> None:
        self.owner = owner  # the owner whose share of common resources the transport uses
        self.credentials = checked(credentials, self.credential_fields)
        self._secrets = [self.credentials[each.name] for each in self.credential_fields if each.secret]
        self._session = session
        self.timeouts = timeouts or Timeouts()
        self.why = ""  # the problem that `status` found, in words for people
        self.silent = False  # whether `status` got no answer at all, rather than an error
        self.networks = networks  # for connections that the transport opens itself; the session has its own
        self.prepare()

    def prepare(self) -> None:
        """Read from the credentials what every request needs; raise CredentialsError."""
        return

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("A transport that was made without a session only reads webhooks.")
        return self._session

    @property
    def capabilities(self) -> Capabilities:
        """Return the account's capabilities; a kind whose credentials decide overrides this."""
        return self.default_capabilities

    @abstractmethod
    async def send(self, message: Message, key: str) -> Outcome:
        """Send one part; `key` is stable per target and part. Never raises for a failure of the service."""

    @abstractmethod
    async def status(self) -> AccountState:
        """Return the account's state as the service reports it now; `why` then says what is wrong, if known."""

    async def upload(self, media: Media) -> Uploaded | Outcome:  # noqa: ARG002 (for kinds that have it)
        """Hand over a file once, to be sent by its handle; return an Outcome when the service did not take it."""
        raise NotOfferedError(f"{self.label} has no media handles.")

    def recipients(self) -> AsyncIterator[Contact]:
        """Yield the groups of the account; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot list recipients.")

    async def log_in(self) -> Credentials | None:
        """Return credentials to keep from now on, where the given ones were exchanged for better ones (a token).

        None means that the given credentials stay. Raises UnansweredError.
        """
        return None

    async def connect(self, webhook: Webhook | None, *, start: bool = True) -> AccountState:  # noqa: ARG002
        """Make or start the session, tell the service where to report, and return the state; safe to repeat.

        Where the account is connected already, the service is only told again where to report. Without `start`, no
        session is made or started, since nobody is there to scan a code. Raises UnansweredError, also where there is no
        session to tell. A kind without sessions only says where to report, if its service can be told.
        """
        return await self.status()

    async def disconnect(self) -> None:
        """Log out: the service forgets the pairing. Logging out twice is no error; raises UnansweredError."""
        raise NotOfferedError(f"{self.label} has no session to log out of.")

    async def pairing(self) -> Pairing | None:
        """Return the code to scan now; None while the service has none yet: ask again in a moment.

        Raises UnansweredError, also when there is nothing to scan.
        """
        raise NotOfferedError(f"{self.label} needs no pairing.")

    async def pairing_code(self, phone: str) -> str:  # noqa: ARG002
        """Return a code to type into the phone with that number (E.164) instead of scanning; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot pair by a code to type.")

    async def check_number(self, address: str) -> bool:  # noqa: ARG002
        """Return whether the service knows this address; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot check numbers.")

    async def start_typing(self, address: str, seconds: float) -> None:  # noqa: ARG002
        """Mark a chat as seen, where the service can, and show typing in it; raise UnansweredError.

        The caller waits, and then calls `stop_typing`. A service that ends it by itself is told for how long.
        """
        raise NotOfferedError(f"{self.label} cannot show typing.")

    async def stop_typing(self, address: str) -> None:  # noqa: ARG002
        """End what `start_typing` began; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot show typing.")

    async def own_limits(self) -> OwnLimits:
        """Return what the service says of its own limits of the account; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} does not tell its own limits.")

    async def number_behind(self, hidden: str) -> str:  # noqa: ARG002
        """Return the open address behind a hidden one, '' where the service does not know it; raise UnansweredError."""
        raise NotOfferedError(f"{self.label} cannot be asked who is behind a hidden address.")

    async def poll(self, since: str) -> Polled:  # noqa: ARG002
        """Return what came in after `since`, which is from the last answer. The first time `since` is empty.

        The first answer brings nothing of the past. Returns at once. The caller stores `since` with the events, in one
        transaction. Raises UnansweredError.
        """
        raise NotOfferedError(f"{self.label} cannot be asked what came in.")

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:  # noqa: ARG002
        """Return the reported events; raise WebhookRefusedError unless the request is surely the service's and fresh.

        Needs no session. A report without meaning for us is an empty list, not an error.
        """
        raise NotOfferedError(f"{self.label} sends no webhooks.")

    def webhook_challenge(self, query: Mapping[str, str], secret: str) -> str:  # noqa: ARG002
        """Return the answer to the GET with which a service checks the address; raise WebhookRefusedError."""
        raise NotOfferedError(f"{self.label} asks no questions about webhooks.")

    def safe(self, text: str) -> str:
        """Return a service's own words: short, on one line, without markup, stack frames and our secrets.

        The end of a file's address is one of these. Some services repeat our secrets in their answers.
        """
        for secret in self._secrets:
            # A shorter value occurs in many ordinary words, and is no secret.
            if len(secret) >= 4:
                text = text.replace(secret, "***")
        text = _FILE_ADDRESS.sub(r"\1...", text[:MAX_READ])
        text = _TAG.sub(" ", _STACK.split(text, maxsplit=1)[0])
        return " ".join(sendable(text).replace("\x00", "").split())[:MAX_DETAIL]

    async def close(self) -> None:
        """Close what this account alone holds open; it is opened again when needed."""
        return

    @final
    def __repr__(self) -> str:
        # Credentials must never reach a log by way of a traceback.
        return f"<{type(self).__name__}>"


def sendable(text: str) -> str:
    """Return `text` without half characters (surrogates): no encoding has them, and some services break on them."""
    return text.encode(errors="replace").decode()


def _one_line(text: str) -> str:
    return "".join(letter for letter in text if category(letter) not in {"Cc", "Cs", "Zl", "Zp"})


def checked(credentials: Credentials, fields: tuple[CredentialField, ...]) -> Credentials:
    """Return the credentials that the fields ask for, defaults filled in; raise CredentialsError."""
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
