"""Reads a mailbox by IMAP: what came since the last time. Nothing in it is changed, not even marked as read.

imaplib waits with a thread, as smtplib does.
"""

import imaplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from delivery.reach import ANYWHERE, Reach

MOST = 50  # at a time
MOST_BYTES = 200_000  # of each: what somebody answers is at the beginning

FAILURES = (imaplib.IMAP4.error, OSError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """Where answers arrive."""

    host: str
    port: int
    encrypted: bool
    user: str = field(repr=False)
    password: str = field(repr=False)
    seconds: float
    reach: Reach = ANYWHERE


def fetch(mailbox: Mailbox, since: str) -> tuple[list[bytes], str]:
    """The messages after `since`, and where to go on; the first time none. Raises one of FAILURES.

    `since` is the mailbox's own name for its numbering and the last number seen: a mailbox that was made anew numbers
    anew, which is a beginning too.
    """
    with _opened(mailbox) as imap:
        validity = (imap.response("UIDVALIDITY")[1][0] or b"").decode()
        known, _, last = since.rpartition(":")
        if known != validity:
            return [], f"{validity}:{max(_numbers(imap, '*'), default=0)}"
        # A star is the last one, however low its number: with nothing new it comes again.
        new = [number for number in _numbers(imap, f"{int(last) + 1}:*") if number > int(last)][:MOST]
        return [_message(imap, number) for number in new], f"{validity}:{new[-1] if new else last}"


@contextmanager
def _opened(mailbox: Mailbox) -> Iterator[imaplib.IMAP4]:
    imap = _connected(mailbox)
    try:
        imap.login(mailbox.user, mailbox.password)
        answer, words = imap.select("INBOX", readonly=True)
        if answer != "OK":
            raise imaplib.IMAP4.error(words)
        yield imap
    finally:
        with suppress(*FAILURES):
            imap.logout()


def _connected(mailbox: Mailbox) -> imaplib.IMAP4:
    class Line(imaplib.IMAP4):
        def _create_socket(self, timeout: float) -> socket.socket:
            plain = mailbox.reach.connect(mailbox.host, mailbox.port, timeout)
            if not mailbox.encrypted:
                return plain
            return ssl.create_default_context().wrap_socket(plain, server_hostname=mailbox.host)

    return Line(mailbox.host, mailbox.port, timeout=mailbox.seconds)


def _numbers(imap: imaplib.IMAP4, which: str) -> list[int]:
    found = imap.uid("SEARCH", f"UID {which}")[1][0]
    return sorted(int(number) for number in (found or b"").split())


def _message(imap: imaplib.IMAP4, number: int) -> bytes:
    """Empty where it was deleted meanwhile."""
    told = imap.uid("FETCH", str(number), f"(BODY.PEEK[]<0.{MOST_BYTES}>)")[1]
    return next((bytes(row[1]) for row in told if isinstance(row, tuple)), b"")
