"""SMTP over connections that stay open between messages.

smtplib blocks a thread while it waits, so everything here runs in threads (docs/decisions/0011-e-mail.md).
"""

import base64
import re
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar

from delivery.outcomes import AccountBlocked, Outcome, Sent
from delivery.transports.leaving import HeldBackError
from delivery.transports.mail.server_answers import Step, cut, outcome_of
from delivery.transports.networks import errors as connection_errors
from delivery.transports.networks.allowance import Allowance, reader
from delivery.transports.networks.allowed import ANYWHERE, AddressNotAllowedError, AllowedNetworks
from delivery.transports.networks.errors import describe_connection_error, place
from delivery.transports.networks.names import connect

LINE_DOT = re.compile(rb"^\.", re.MULTILINE)
Reply = tuple[int, bytes]
WRONG_PASSWORD = 535
MOST_REPLY_BYTES = 256 * 1024
LAST_PIECE = 2**16  # bytes of the content that wait for the check; most messages are shorter
CONNECTION_STEPS = {Step.CONNECT: connection_errors.Step.CONNECT, Step.LOGIN: connection_errors.Step.LOG_IN}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A mail server and our login; `our_name` is for EHLO, `safe` removes our secrets from the server's words."""

    host: str
    port: int
    security: str  # "starttls", "tls" or "none"
    user: str = field(repr=False)
    password: str = field(repr=False)
    our_name: str
    connect_seconds: float
    safe: Callable[[str], str]
    networks: AllowedNetworks = ANYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message in the form for SMTP. The first recipient is the one that counts; the others get copies."""

    sender: str
    recipients: Sequence[str]
    content: bytes = field(repr=False)


class RefusedError(Exception):
    """Raised when the server refused a command; `outcome` says what that means."""

    def __init__(self, outcome: Outcome, *, usable: bool = False) -> None:
        super().__init__()
        self.outcome = outcome
        self.usable = usable  # the connection can still be used


class SmtpConnections:
    """One account's connections: each carries one message at a time, and a free one is used again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._free: list[Connection] = []  # append and pop are safe between threads

    def deliver(
        self, envelope: Envelope, *, seconds: float, look: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Hand over one message; never raises for a failure of the server or the network.

        `look` is called right before the end of the content leaves. Its errors pass through, and nothing leaves.
        """
        deadline = time.monotonic() + seconds
        try:
            connection = self._take(deadline)
        except RefusedError as error:
            return error.outcome
        try:
            connection.hand_over(envelope, deadline, look)
        except RefusedError as error:
            if error.usable:
                self._free.append(connection)
            else:
                connection.close()
            return error.outcome
        except HeldBackError:
            connection.close()  # in the middle of DATA: the server drops a message without an end
            raise
        self._free.append(connection)
        return Sent()

    def try_out(self, *, seconds: float) -> Outcome:
        """Connect and log in, and do nothing more."""
        try:
            self._free.append(self._take(time.monotonic() + seconds))
        except RefusedError as error:
            return error.outcome
        return Sent()

    def has_free(self) -> bool:
        """Return whether a connection is open and not in use."""
        return bool(self._free)

    def close(self) -> None:
        """Close every free connection politely (QUIT)."""
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

    def __init__(self, server: Server, smtp: smtplib.SMTP, allowance: Allowance) -> None:
        self._server = server
        self._smtp = smtp
        self._allowance = allowance

    @classmethod
    def open(cls, server: Server, deadline: float) -> Self:
        """Connect, encrypt and log in, as the server's settings ask; raise RefusedError."""
        until = time.monotonic() + server.connect_seconds
        allowance = Allowance(until=until, most_bytes=MOST_REPLY_BYTES)
        connection = cls(
            server, _answer(server, Step.CONNECT, lambda: _connect(server, allowance)), allowance
        )
        try:
            connection._introduce(deadline)
        except RefusedError:
            connection.close()
            raise
        return connection

    def stands(self, deadline: float) -> bool:
        """Return whether the server is still there. A server that waited too long has sent 421 and closed."""
        try:
            return self._ask(Step.CONNECT, deadline, self._smtp.rset)[0] == 250
        except RefusedError:
            return False

    def hand_over(self, envelope: Envelope, deadline: float, look: Callable[[], None]) -> None:
        """Hand the message over; raise RefusedError unless the server took it for its first recipient."""
        size = [f"size={len(envelope.content)}"] if self._smtp.has_extn("size") else []
        self._expect(Step.SENDER, deadline, lambda: self._smtp.mail(envelope.sender, size))
        first, *copies = envelope.recipients
        self._expect(Step.RECIPIENT, deadline, lambda: self._smtp.rcpt(first))
        for copy in copies:
            code, words = self._ask(Step.RECIPIENT, deadline, partial(self._smtp.rcpt, copy))
            # A refused copy does not stop the message to its recipient; a closed connection does.
            if code == 421:
                raise _refused(self._server, Step.RECIPIENT, code, words)
        self._expect(Step.RECIPIENT, deadline, self._announce)
        self._expect(Step.DATA, deadline, lambda: self._write(envelope.content, deadline, look))

    # smtplib's `data` in two steps: a server may be slow before it accepts the content.

    def _announce(self) -> Reply:
        code, words = self._smtp.docmd("DATA")
        if code != 354:
            raise smtplib.SMTPDataError(code, words)
        return 250, words

    def _write(self, content: bytes, deadline: float, look: Callable[[], None]) -> Reply:
        """Write the content. The check is before the last piece: a file may take minutes, and only the end sends it."""
        dotted = LINE_DOT.sub(b"..", content)
        whole = dotted + (b".\r\n" if dotted.endswith(b"\r\n") else b"\r\n.\r\n")
        if first := whole[:-LAST_PIECE]:
            self._smtp.send(first)
        look()
        self._hurry(deadline)
        self._smtp.send(whole[-LAST_PIECE:])
        return self._smtp.getreply()

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
                where = place(self._server.host, self._server.port)
                raise RefusedError(AccountBlocked(reason=f"TLS is not offered (STARTTLS), {where}"))
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
        self._hurry(deadline)
        return _answer(self._server, step, command)

    def _hurry(self, deadline: float) -> None:
        self._allowance.renew(until=deadline, most_bytes=MOST_REPLY_BYTES)
        if self._smtp.sock is not None:  # also for commands that smtplib sends by itself, such as STARTTLS
            self._smtp.sock.settimeout(max(deadline - time.monotonic(), 0.001))


def _connect(server: Server, allowance: Allowance) -> smtplib.SMTP:
    class Line(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            return connect(server.networks, host, port, timeout)

        def getreply(self) -> Reply:
            if self.file is None and self.sock is not None:
                self.file = reader(self.sock, allowance)
            return super().getreply()

        def send(self, s: Any) -> None:
            content = s.encode(self.command_encoding) if isinstance(s, str) else bytes(s)
            if self.sock is None:
                return super().send(content)  # says that it is not connected
            return allowance.send(self.sock, content, super().send)

    class EncryptedLine(smtplib.SMTP_SSL, Line):
        """A TLS connection that wraps the socket of the plain one."""

    where, wait = (server.host, server.port, server.our_name), server.connect_seconds
    if server.security == "tls":
        return EncryptedLine(*where, timeout=wait, context=_tls())
    return Line(*where, timeout=wait)


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _answer(server: Server, step: Step, command: Callable[[], T]) -> T:
    """Return the answer to one command; raise RefusedError if there is none."""
    try:
        return command()
    except smtplib.SMTPDataError as error:
        # The server refused before the content of the message.
        raise _refused(server, Step.RECIPIENT, error.smtp_code, error.smtp_error) from error
    except smtplib.SMTPResponseException as error:
        code = error.smtp_code if step < Step.DATA else -1
        raise _refused(server, step, code, error.smtp_error) from error
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise RefusedError(_without_answer(server, step, error)) from error


def _refused(server: Server, step: Step, code: int, words: bytes | str) -> RefusedError:
    text = words if isinstance(words, str) else words.decode("utf-8", "replace")
    usable = step >= Step.SENDER and 400 <= code <= 599 and code != 421
    outcome = outcome_of(step, code, server.safe(text))
    if step is Step.LOGIN and not isinstance(outcome, Sent):
        outcome = replace(outcome, reason=_login_words(server, code, server.safe(text)))
    return RefusedError(outcome, usable=usable)


def _login_words(server: Server, code: int, words: str) -> str:
    """Return that the login failed, and where; a wrong password is called that."""
    cause = f"wrong password ({code})" if code == WRONG_PASSWORD else f"the mail server answered {code}"
    said = f": {words}" if words else ""
    return f"login failed: {cause}, {place(server.host, server.port)}{said}"


def _without_answer(server: Server, step: Step, error: Exception) -> Outcome:
    if isinstance(error, AddressNotAllowedError):
        return AccountBlocked(reason=AddressNotAllowedError.reason)
    gone = isinstance(error, smtplib.SMTPServerDisconnected) or not isinstance(error, smtplib.SMTPException)
    if step is Step.LOGIN and not gone:
        where = place(server.host, server.port)
        return AccountBlocked(reason=f"the mail server offers no way to log in that we know, {where}")
    return cut(step, reason=_words_for(server, step, error))


def _words_for(server: Server, step: Step, error: Exception) -> str:
    return describe_connection_error(
        error,
        server.host,
        server.port,
        CONNECTION_STEPS.get(step, connection_errors.Step.SEND),
        seconds=server.connect_seconds if step is Step.CONNECT else None,
        otherwise="the mail server closed the connection before it answered",
    )
