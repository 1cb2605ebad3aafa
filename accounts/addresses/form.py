"""The parts that canonical addresses of all channels share."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal["group", "person", "mailbox", "room", "profile"]

# The pattern of a canonical address, by channel and kind, in the syntax that Python and PostgreSQL share.
SHAPES: tuple[tuple[str, Kind, str], ...] = (
    ("whatsapp", "person", r"^(\+[1-9][0-9]{5,14}|[0-9]{1,20}@lid)$"),
    ("whatsapp", "group", r"^[0-9]{1,20}(-[0-9]{1,20})?@(g\.us|newsletter)$"),
    ("email", "mailbox", r"^[^\s@A-Z]+@[a-z0-9.-]+$"),
    ("linkedin", "profile", r"^[^\s/?#]+$"),
    ("matrix", "room", r"^[!#]\S+$"),
    ("matrix", "person", r"^@\S+:\S+$"),
)


LONGEST_LOOKED_AT = 3_000


class BadAddressError(ValueError):
    """The text is not an address. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    kind: Kind
    text: str


def plain(text: str) -> str:
    """Return `text` without the invisible signs of pages and spreadsheets, and with ordinary digits and spaces.

    Only as many characters are read as an address can have: Unicode's own algorithm takes time that grows with the
    square of the length of a long run of accents.
    """
    text = text[:LONGEST_LOOKED_AT]
    if text.isascii() and text.isprintable():  # as nearly all are: nothing of the following changes these
        return " ".join(text.split())
    seen = "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c) not in {"Cc", "Cf"})
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def shown(text: str) -> str:
    """Return `text` as an error message quotes it."""
    return f"“{text if len(text) <= 60 else text[:60] + '…'}”"
