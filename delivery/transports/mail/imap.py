"""Reads new e-mails of a mailbox by IMAP. Nothing in the mailbox is changed, not even marked as read.

imaplib blocks a thread while it waits, as smtplib does.
"""

import imaplib
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from delivery.transports.networks.allowance import Allowance, reader
from delivery.transports.networks.allowed import ANYWHERE, AddressNotAllowedError, AllowedNetworks
from delivery.transports.networks.errors import Step, describe_connection_error, place
from delivery.transports.networks.names import connect

MOST = 50  # at a time
MOST_BYTES = 200_000  # bytes of each: the answer is at the beginning
MOST_ANSWERED = 2 * MOST_BYTES  # bytes that the server may send at once, whatever it was asked for
MOST_IN_ALL = 2 * MOST * MOST_BYTES  # in one visit
LONGEST_VISIT = 3  # times the seconds of one answer

FAILURES = (imaplib.IMAP4.error, OSError, ValueError)


class LoginRefusedError(imaplib.IMAP4.error):
    """Raised when the mailbox server refuses the login. Its words may repeat the password, and are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """The mailbox in which answers arrive."""

    host: str
    port: int
    encrypted: bool
    user: str = field(repr=False)
    password: str = field(repr=False)
    seconds: float
    networks: AllowedNetworks = ANYWHERE


def fetch(mailbox: Mailbox, since: str) -> tuple[list[bytes], str]:
    """Return the messages after `since`, and where to continue; the first time none. Raises one of FAILURES.

    `since` is the mailbox's own name for its numbering and the last number seen: a mailbox that was made again has a
    new numbering, which counts as a first time too.
    """
    with _opened(mailbox) as imap:
        validity = (imap.response("UIDVALIDITY")[1][0] or b"").decode()
        known, _, last = since.rpartition(":")
        if known != validity:
            return [], f"{validity}:{max(_numbers(imap, '*'), default=0)}"
        # A star means the last message, however low its number: with nothing new that message comes again.
        new = [number for number in _numbers(imap, f"{int(last) + 1}:*") if number > int(last)][:MOST]
        return [_message(imap, number) for number in new], f"{validity}:{new[-1] if new else last}"


@contextmanager
def _opened(mailbox: Mailbox) -> Iterator[imaplib.IMAP4]:
    imap = _connected(mailbox)
    try:
        _log_in(imap, mailbox)
        answer, words = imap.select("INBOX", readonly=True)
        if answer != "OK":
            raise imaplib.IMAP4.error(words)
        yield imap
        with suppress(*FAILURES):
            imap.logout()
    finally:
        # No logout after a protocol error; and where the logout gets no answer, the socket is closed all the same.
        with suppress(*FAILURES):
            imap.shutdown()


def _log_in(imap: imaplib.IMAP4, mailbox: Mailbox) -> None:
    try:
        imap.login(mailbox.user, mailbox.password)
    except imaplib.IMAP4.abort:
        raise  # the server closed the connection
    except imaplib.IMAP4.error:
        raise LoginRefusedError from None


def words_for(mailbox: Mailbox, error: Exception) -> str:
    """Return why the mailbox could not be read: the step, the cause, the host and the port."""
    if isinstance(error, AddressNotAllowedError):
        return f"mailbox: {AddressNotAllowedError.reason}"
    if isinstance(error, LoginRefusedError):
        return f"mailbox: login failed: wrong name or password, {place(mailbox.host, mailbox.port)}"
    said = describe_connection_error(
        error, mailbox.host, mailbox.port, Step.CONNECT, seconds=mailbox.seconds, otherwise="cannot be read"
    )
    return f"mailbox: {said}"


def _connected(mailbox: Mailbox) -> imaplib.IMAP4:
    until = time.monotonic() + LONGEST_VISIT * mailbox.seconds
    allowance = Allowance(until=until, most_bytes=MOST_IN_ALL)

    class Line(imaplib.IMAP4):
        def open(self, host: str = "", port: int = 143, timeout: float | None = None) -> None:
            super().open(host, port, timeout)
            name = "_file" if "_file" in vars(self) else "file"  # by the version of Python
            vars(self)[name].close()
            vars(self)[name] = reader(self.sock, allowance)

        def _create_socket(self, timeout: float) -> socket.socket:
            plain = connect(mailbox.networks, mailbox.host, mailbox.port, timeout)
            if not mailbox.encrypted:
                return plain
            return ssl.create_default_context().wrap_socket(plain, server_hostname=mailbox.host)

        def read(self, size: int) -> bytes:
            if size > MOST_ANSWERED:  # imaplib would allocate as much memory as the server announces
                raise self.abort("the mailbox sends more than it was asked for")
            return super().read(size)

    return Line(mailbox.host, mailbox.port, timeout=mailbox.seconds)


def _numbers(imap: imaplib.IMAP4, which: str) -> list[int]:
    found = imap.uid("SEARCH", f"UID {which}")[1][0]
    return sorted(int(number) for number in (found or b"").split())


def _message(imap: imaplib.IMAP4, number: int) -> bytes:
    """Return the message; empty where it was deleted meanwhile."""
    told = imap.uid("FETCH", str(number), f"(BODY.PEEK[]<0.{MOST_BYTES}>)")[1]
    return next((bytes(row[1]) for row in told if isinstance(row, tuple)), b"")
