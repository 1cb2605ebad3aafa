"""Makes and reads the addresses of files: each names one file for one account, and ends after a while.

What an address says is encrypted with the keys of ENCRYPTION_KEY, so that it can neither be guessed, changed nor read.
"""

import json
import mimetypes
import re
import time
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings

from accounts.encryption import cipher
from delivery.transports.base import FILES_PATH

PURPOSE = "file"  # a stored secret, which the same keys open, is no address
MOST_TOKEN = 1500  # characters; longer ones are not even read
ENDING = re.compile(r"\.[a-z0-9]{1,5}")


class NotAnAddressError(ValueError):
    """Raised for an address that we did not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The content of an address: the stored file, for whom it is, and until when (seconds since 1970)."""

    file: str
    content_type: str
    account_id: int
    run_id: int | None  # None: a test
    until: int

    @property
    def over(self) -> bool:
        return time.time() >= self.until

    @property
    def filename(self) -> str:
        """Return a plain name, whose ending tells the type: some gateways look at nothing else."""
        guessed = mimetypes.guess_extension(self.content_type, strict=False) or ""
        return f"file{guessed if ENDING.fullmatch(guessed) else ''}"


def url_of(ticket: Ticket) -> str:
    """Return the address under FILES_URL."""
    said = [PURPOSE, ticket.file, ticket.content_type, ticket.account_id, ticket.run_id, ticket.until]
    token = cipher().encrypt(json.dumps(said, ensure_ascii=False).encode()).decode().rstrip("=")
    return f"{settings.FILES_URL}{FILES_PATH}{token}/{ticket.filename}"


def read(path: str) -> Ticket:
    """Return what the path of an address says; raise NotAnAddressError."""
    token, _, filename = path.removeprefix(FILES_PATH).partition("/")
    if not path.startswith(FILES_PATH) or len(token) > MOST_TOKEN:
        raise NotAnAddressError
    ticket = _ticket(_said(token))
    if filename != ticket.filename:
        raise NotAnAddressError
    return ticket


def _said(token: str) -> Any:
    try:
        return json.loads(cipher().decrypt(token.encode() + b"=" * (-len(token) % 4)))
    except (InvalidToken, ValueError, RecursionError) as error:
        raise NotAnAddressError from error


def _ticket(said: Any) -> Ticket:
    match said:
        case [
            purpose,
            str(file),
            str(content_type),
            int(account_id),
            int() | None as run_id,
            int(until),
        ] if purpose == PURPOSE:
            return Ticket(
                file=file, content_type=content_type, account_id=account_id, run_id=run_id, until=until
            )
    raise NotAnAddressError
