"""What became of one message: a value that a transport returns and `retry.py` decides on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The service took the message."""

    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """The service asks for less; `after` is its own wait in seconds, if it named one."""

    after: float | None = None
    reason: str = "rate limited"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotConnected:
    """The account's session is down; nothing left."""

    after: float | None = None
    reason: str = "account not connected"


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """It certainly did not go out this time, and may the next time; `after` is a wait for this recipient alone."""

    reason: str
    after: float | None = None


# WhatsApp's number for "this account may not write to strangers for a while": the recipient is not at fault.
FIRST_CONTACTS_LOCKED = "463"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Refused for good: this message will never go out to this recipient."""

    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountBlocked:
    """The service blocked the account or logged it out."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The request may have arrived: a read timeout, a cut connection, an answer nobody can read."""

    reason: str


Outcome = Sent | RateLimited | NotConnected | TryAgain | Rejected | AccountBlocked | Unknown


def name_of(outcome: Outcome) -> str:
    """The outcome's name in the ledger."""
    return _NAMES[type(outcome)]


_NAMES: dict[type[Outcome], str] = {
    Sent: "sent",
    RateLimited: "rate_limited",
    NotConnected: "not_connected",
    TryAgain: "try_again",
    Rejected: "rejected",
    AccountBlocked: "account_blocked",
    Unknown: "unknown",
}
