"""What canonical addresses of all channels have in common."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal["group", "person", "mailbox", "room", "profile"]

# What a canonical address looks like, by channel and kind, in the words that Python and PostgreSQL share.
SHAPES: tuple[tuple[str, Kind, str], ...] = (
    ("whatsapp", "person", r"^(\+[1-9][0-9]{5,14}|[0-9]{1,20}@lid)$"),
    ("whatsapp", "group", r"^[0-9]{1,20}(-[0-9]{1,20})?@(g\.us|newsletter)$"),
    ("email", "mailbox", r"^[^\s@A-Z]+@[a-z0-9.-]+$"),
    ("linkedin", "profile", r"^[^\s/?#]+$"),
    ("matrix", "room", r"^[!#]\S+$"),
    ("matrix", "person", r"^@\S+:\S+$"),
)


class BadAddressError(ValueError):
    """There is no such address. The text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    kind: Kind
    text: str


def plain(text: str) -> str:
    """`text` without what a page or a spreadsheet adds unseen: wide digits, odd spaces, marks of direction."""
    seen = "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c) not in {"Cc", "Cf"})
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def shown(text: str) -> str:
    """`text` as an error quotes it."""
    return f"“{text if len(text) <= 60 else text[:60] + '…'}”"
