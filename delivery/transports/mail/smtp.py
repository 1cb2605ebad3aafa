"""SMTP over connections that stay open between messages.

smtplib waits with a thread, so everything here runs in threads (docs/decisions/0010-e-mail-by-threads.md).
"""

import base64
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self, TypeVar

from delivery.outcomes import AccountBlocked, Outcome, Sent
from delivery.reach import ANYWHERE, OutOfReachError, Reach
from delivery.transports.mail.replies import Step, cut, outcome_of

Reply = tuple[int, bytes]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where, and as whom; `our_name` is how we introduce ourselves, `safe` takes our secrets out of its words."""

    host: str
    port: int
    security: str  # "starttls", "tls" or "none"
    user: str = field(repr=False)
    password: str = field(repr=False)
    our_name: str
    connect_seconds: float
    safe: Callable[[str], str]
    reach: Reach = ANYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message as it travels. The first recipient is the one that counts; the others get copies."""

    sender: str
    recipients: Sequence[str]
    content: bytes = field(repr=False)


class RefusedError(Exception):
    """The server did not do what it was asked; `outcome` says what that means."""

    def __init__(self, outcome: Outcome, *, usable: bool = False) -> None:
        super().__init__()
        self.outcome = outcome
        self.usable = usable  # the connection still is


class Mailman:
    """One account's connections: each carries one message at a time, and one that is free is used again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._free: list[Connection] = []  # append and pop are safe between threads

    def deliver(self, envelope: Envelope, *, seconds: float) -> Outcome:
        """Hand over one message; never raises for what the server or the network does."""
        deadline = time.monotonic() + seconds
        try:
            connection = self._take(deadline)
        except RefusedError as error:
            return error.outcome
        try:
            connection.hand_over(envelope, deadline)
        except RefusedError as error:
            if error.usable:
                self._free.append(connection)
            else:
                connection.close()
            return error.outcome
        self._free.append(connection)
        return Sent()

    def try_out(self, *, seconds: float) -> Outcome:
        """Connect and log in, and nothing more."""
        try:
            self._free.append(self._take(time.monotonic() + seconds))
        except RefusedError as error:
            return error.outcome
        return Sent()

    def close(self) -> None:
        """Say goodbye on every connection that is free."""
        while self._free:
            self._free.pop().quit()

    def _take(self, deadline: float) -> "Connection":
        while self._free:
            connection = self._free.pop()
            if connection.stands(deadline):
                return connection
            connection.close()
        return Connection.open(self._server, deadline)


class Connection:
    """One conversation with the server. Deadlines are moments of the monotonic clock."""

    def __init__(self, server: Server, smtp: smtplib.SMTP) -> None:
        self._server = server
        self._smtp = smtp

    @classmethod
    def open(cls, server: Server, deadline: float) -> Self:
        """Connected, encrypted and logged in, as the server's settings ask; raises RefusedError."""
        connection = cls(server, _answer(server, Step.CONNECT, lambda: _connect(server)))
        try:
            connection._introduce(deadline)
        except RefusedError:
            connection.close()
            raise
        return connection

    def stands(self, deadline: float) -> bool:
        """Whether the server is still there. One that got tired of waiting said 421 and left."""
        try:
            return self._ask(Step.CONNECT, deadline, self._smtp.rset)[0] == 250
        except RefusedError:
            return False

    def hand_over(self, envelope: Envelope, deadline: float) -> None:
        """Raises RefusedError unless the server took the message for its first recipient."""
        size = [f"size={len(envelope.content)}"] if self._smtp.has_extn("size") else []
        self._expect(Step.SENDER, deadline, lambda: self._smtp.mail(envelope.sender, size))
        first, *copies = envelope.recipients
        self._expect(Step.RECIPIENT, deadline, lambda: self._smtp.rcpt(first))
        for copy in copies:
            code, words = self._ask(Step.RECIPIENT, deadline, partial(self._smtp.rcpt, copy))
            # A copy that is refused is no reason to keep the message from its recipient; a server that leaves is.
            if code == 421:
                raise _refused(self._server, Step.RECIPIENT, code, words)
        self._expect(Step.DATA, deadline, lambda: self._smtp.data(envelope.content))

    def quit(self) -> None:
        try:
            self._smtp.quit()
        except (smtplib.SMTPException, OSError):
            self.close()

    def close(self) -> None:
        self._smtp.close()

    def _introduce(self, deadline: float) -> None:
        self._expect(Step.CONNECT, deadline, self._smtp.ehlo)
        if self._server.security == "starttls":
            if not self._smtp.has_extn("starttls"):
                raise RefusedError(AccountBlocked(reason="the mail server offers no encryption (STARTTLS)"))
            self._expect(Step.CONNECT, deadline, lambda: self._smtp.starttls(context=_tls()))
            self._expect(Step.CONNECT, deadline, self._smtp.ehlo)
        if self._server.user:
            self._expect(Step.LOGIN, deadline, self._log_in)

    def _log_in(self) -> Reply:
        user, password = self._server.user, self._server.password
        if (user + password).isascii():
            return self._smtp.login(user, password)
        # smtplib knows ASCII passwords only.
        words = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        return self._smtp.docmd("AUTH", f"PLAIN {words}")

    def _expect(self, step: Step, deadline: float, command: Callable[[], Reply]) -> None:
        code, words = self._ask(step, deadline, command)
        if not 200 <= code <= 299:
            raise _refused(self._server, step, code, words)

    def _ask(self, step: Step, deadline: float, command: Callable[[], Reply]) -> Reply:
        if self._smtp.sock is not None:
            self._smtp.sock.settimeout(max(deadline - time.monotonic(), 0.001))
        return _answer(self._server, step, command)


def _connect(server: Server) -> smtplib.SMTP:
    class Line(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            return server.reach.connect(host, port, timeout)

    class EncryptedLine(smtplib.SMTP_SSL, Line):
        """Wraps the socket that the plain one opens."""

    where, wait = (server.host, server.port, server.our_name), server.connect_seconds
    if server.security == "tls":
        return EncryptedLine(*where, timeout=wait, context=_tls())
    return Line(*where, timeout=wait)


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _answer(server: Server, step: Step, command: Callable[[], T]) -> T:
    """The answer to one command; raises RefusedError if there is none."""
    try:
        return command()
    except smtplib.SMTPDataError as error:
        # The server did not even want to hear the message.
        raise _refused(server, Step.RECIPIENT, error.smtp_code, error.smtp_error) from error
    except smtplib.SMTPResponseException as error:
        code = error.smtp_code if step < Step.DATA else -1
        raise _refused(server, step, code, error.smtp_error) from error
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise RefusedError(_without_answer(step, error)) from error


def _refused(server: Server, step: Step, code: int, words: bytes | str) -> RefusedError:
    text = words if isinstance(words, str) else words.decode("utf-8", "replace")
    usable = step >= Step.SENDER and 400 <= code <= 599 and code != 421
    return RefusedError(outcome_of(step, code, server.safe(text)), usable=usable)


def _without_answer(step: Step, error: Exception) -> Outcome:
    if isinstance(error, OutOfReachError):
        return AccountBlocked(reason=OutOfReachError.reason)
    gone = isinstance(error, smtplib.SMTPServerDisconnected) or not isinstance(error, smtplib.SMTPException)
    if step is Step.LOGIN and not gone:
        return AccountBlocked(reason="the mail server offers no way to log in that we know")
    return cut(step, reason=_words_for(step, error))


def _words_for(step: Step, error: Exception) -> str:
    # smtplib says only that it is disconnected; why, the exception behind it knows.
    cause = error.__context__ if isinstance(error, smtplib.SMTPServerDisconnected) else error
    if isinstance(error, ssl.SSLError):
        return "no safe connection to the mail server (TLS)"
    if isinstance(error, socket.gaierror | ValueError):
        return "the name of the mail server is not known"
    if isinstance(cause, TimeoutError):
        return "no answer from the mail server in time"
    if step is Step.CONNECT:
        return "the mail server cannot be reached"
    return "the mail server closed the connection before it answered"
