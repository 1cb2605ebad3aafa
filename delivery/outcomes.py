"""The outcomes of one message: values that a transport returns and on which `retry.py` decides."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The service took the message."""

    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """The service asks us to slow down; `after` is its own wait in seconds, if it named one."""

    after: float | None = None
    reason: str = "rate limited"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotConnected:
    """The account's session is down; no message left."""

    after: float | None = None
    reason: str = "account not connected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """The service was not reached: no connection, unknown host, no secure line, a wrong address. No message left."""

    reason: str
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerError:
    """The service failed and certainly did not take the message; `after` is its own wait, if it named one.

    A single failure may be caused by the message; several in a row are caused by the service. `everybody` says that the
    service takes no messages at all for the moment, so that one failure is enough.
    """

    reason: str
    after: float | None = None
    everybody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """This recipient cannot receive for now, others can: a mail server that greylists, a full mailbox.

    `after` is a wait for this recipient alone, if the service named one.
    """

    reason: str
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """We held the message back, for example after this process stood still. Nobody else is at fault."""

    reason: str


# WhatsApp's code for "this account may not write to new people for a while": the recipient is not at fault.
FIRST_CONTACTS_LOCKED = "463"
# Its code for "this account has opened as many new chats as its quota allows": seen, and not documented.
NEW_CHATS_USED_UP = "475"
NO_NEW_CHATS = frozenset({FIRST_CONTACTS_LOCKED, NEW_CHATS_USED_UP})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The service refused for good: this message will never reach this recipient."""

    reason: str
    code: str = ""

    @property
    def dead_address(self) -> bool:
        """Return whether the service knows nobody at the address: no message will ever reach it."""
        return self.code in NOBODY_THERE or is_dead_status(self.code.rpartition(" ")[2])


# Codes of services for "nobody is at this address". 131026 is Meta's for a number that is not on WhatsApp.
NOBODY_THERE = frozenset({"not_on_whatsapp", "unknown_number", "unknown_profile", "invalid", "131026"})
# The mail servers' codes for it (RFC 3463). A full mailbox, a size or a policy say nothing about the address.
DEAD_STATUSES = frozenset({"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"})


def is_dead_status(enhanced: str) -> bool:
    """Decide whether a mail server's enhanced status code says that nothing arrives at the address."""
    return enhanced in DEAD_STATUSES


# Codes of our own refusals, made before a service is asked.
REFUSED_HERE = frozenset(
    {
        "bad_address",
        "bad_handle",
        "media_missing",
        "media_too_large",
        "no_files",
        "no_phone",
        "not_a_room",
        "too_many_characters",
        "unsupported",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountBlocked:
    """The service blocked the account or logged it out."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The request may have arrived: a read timeout, a cut connection, an answer that cannot be read.

    `provider_id` is the message's id, where we choose it ourselves: a report about the message names it.
    """

    reason: str
    provider_id: str = ""


Outcome = (
    Sent
    | RateLimited
    | NotConnected
    | Unreachable
    | ServerError
    | TryAgain
    | HeldBack
    | Rejected
    | AccountBlocked
    | Unknown
)


# A limit counts what left or may have left (SPEC P14). The ledger has the same in `activity/ledger.py`.
NEVER_LEFT = (NotConnected, Unreachable, HeldBack)


def name_of(outcome: Outcome) -> str:
    """Return the outcome's name in the ledger."""
    return _NAMES[type(outcome)]


_NAMES: dict[type[Outcome], str] = {
    Sent: "sent",
    RateLimited: "rate_limited",
    NotConnected: "not_connected",
    Unreachable: "unreachable",
    ServerError: "server_error",
    TryAgain: "try_again",
    HeldBack: "held_back",
    Rejected: "rejected",
    AccountBlocked: "account_blocked",
    Unknown: "unknown",
}
