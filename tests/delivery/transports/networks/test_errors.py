"""The reasons of failed connections in plain words: real sockets, real certificates, real libraries."""

import asyncio
import imaplib
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from delivery.outcomes import AccountBlocked, Sent, Unknown
from delivery.transports.http.exchange import Answer, exchange, json_request, open_session
from delivery.transports.mail import imap
from delivery.transports.mail.imap import Mailbox
from delivery.transports.mail.smtp import Server, SmtpConnections
from delivery.transports.networks.errors import Step, describe_connection_error, place
from tests.delivery.transports.certificate import self_signed

PASSWORD = "correct-horse-battery"
Talk = Callable[[socket.socket], None]


@contextmanager
def listening(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port on which every caller gets `talk`, after a handshake where there is TLS."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def serve() -> None:
            with ExitStack() as open_lines:
                while not over.is_set():
                    with suppress(OSError):
                        line = open_lines.enter_context(server.accept()[0])
                        line.settimeout(5)
                        talk(tls.wrap_socket(line, server_side=True) if tls else line)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


def silent(line: socket.socket) -> None:
    """Take the call, and say nothing."""


def hang_up(line: socket.socket) -> None:
    line.close()


def lines(*said: str) -> Talk:
    """Say the first line, and each of the others after a line of the caller's."""

    def talk(line: socket.socket) -> None:
        line.sendall(f"{said[0]}\r\n".encode())
        with line.makefile("rb") as heard:
            for answer in said[1:]:
                if not heard.readline():
                    return
                line.sendall(f"{answer}\r\n".encode())

    return talk


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A failure to provoke: to where the caller connects, who answers there, and what is said of it."""

    said: str  # {port} stands for the port
    host: str = "127.0.0.1"
    talk: Talk | None = None  # None: nobody listens
    certificate: dict[str, object] | None = None
    trusted: bool = False
    tls: bool = False  # the caller wants it

    def __str__(self) -> str:
        return self.said


SHARED = [
    Case(said="connection refused, 127.0.0.1:{port}"),
    Case(said="name not found: gatway.invalid:{port}", host="gatway.invalid"),
    Case(
        said="TLS failed: certificate is self-signed, localhost:{port}",
        host="localhost",
        talk=silent,
        certificate={},
        tls=True,
    ),
    Case(
        said="TLS failed: certificate has expired, localhost:{port}",
        host="localhost",
        talk=silent,
        certificate={"begins": -9, "ends": -2},
        trusted=True,
        tls=True,
    ),
    Case(
        said="TLS failed: certificate is not valid yet, localhost:{port}",
        host="localhost",
        talk=silent,
        certificate={"begins": 2, "ends": 9},
        trusted=True,
        tls=True,
    ),
    Case(
        said="TLS failed: certificate is for another name, localhost:{port}",
        host="localhost",
        talk=silent,
        certificate={"name": "mail.example"},
        trusted=True,
        tls=True,
    ),
    Case(
        said="TLS failed: the server does not speak TLS on this port, 127.0.0.1:{port}",
        talk=lines("220 mail.example ESMTP"),
        tls=True,
    ),
]
HTTP = [
    *SHARED,
    Case(said="no answer within 1 s, 127.0.0.1:{port}", talk=silent),
    Case(said="the gateway closed the connection before it answered, 127.0.0.1:{port}", talk=hang_up),
]
SMTP = [
    *SHARED,
    Case(said="no answer within 0.5 s, 127.0.0.1:{port}", talk=silent),
    Case(said="TLS is not offered (STARTTLS), 127.0.0.1:{port}", talk=lines("220 hello", "250 mail.example")),
    Case(said="the server closed the connection, 127.0.0.1:{port}", talk=hang_up),
]


@contextmanager
def staged(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    if case.talk is None:
        yield closed_port()
        return
    context = None
    if case.certificate is not None:
        context, trusted = self_signed(folder, **case.certificate)  # type: ignore[arg-type]  # a table's row
        if case.trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with listening(case.talk, context) as port:
        yield port


def aiohttp_alone() -> aiohttp.ClientSession:
    # aiohttp makes its context once; each case trusts something else.
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl.create_default_context()))


@pytest.mark.parametrize("case", HTTP, ids=str)
@pytest.mark.parametrize("session", [aiohttp_alone, open_session])
def test_http(
    session: Callable[[], aiohttp.ClientSession], case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(port: int) -> str:
        url = URL.build(scheme="https" if case.tls else "http", host=case.host, port=port)
        async with session() as opened:
            answer = await exchange(
                opened, json_request("POST", url, headers={}, payload={}), connect=0.5, total=1
            )
        assert not isinstance(answer, Answer)
        return answer.reason

    with staged(case, tmp_path, monkeypatch) as port:
        said = asyncio.run(ask(port))
    assert said in {case.said.format(port=port), f"the server closed the connection, {case.host}:{port}"}
    assert (said == case.said.format(port=port)) or case.talk is hang_up


def smtp(case: Case, port: int) -> Server:
    return Server(
        host=case.host,
        port=port,
        security="tls" if case.tls else "starttls",
        user="anna@example.com",
        password=PASSWORD,
        our_name="example.com",
        connect_seconds=0.5,
        safe=lambda text: text.replace(PASSWORD, "***"),
    )


@pytest.mark.parametrize("case", SMTP, ids=str)
def test_smtp(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with staged(case, tmp_path, monkeypatch) as port:
        outcome = SmtpConnections(smtp(case, port)).try_out(seconds=2)
    assert not isinstance(outcome, Sent)
    assert outcome.reason == case.said.format(port=port)


def test_smtp_with_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = lines("220 hello", "250-mail.example\r\n250 AUTH PLAIN", f"535 5.7.8 Bad credentials {PASSWORD}")
    with listening(talk) as port:
        case = Case(said="", talk=talk)
        server = smtp(case, port)
        plain = Server(**{name: getattr(server, name) for name in Server.__slots__} | {"security": "none"})
        outcome = SmtpConnections(plain).try_out(seconds=2)
    assert isinstance(outcome, AccountBlocked)
    assert (
        outcome.reason == f"login failed: wrong password (535), 127.0.0.1:{port}: 5.7.8 Bad credentials ***"
    )


@pytest.mark.parametrize(
    "case",
    [*SHARED, Case(said="no answer within 0.5 s, 127.0.0.1:{port}", talk=silent)],
    ids=str,
)
def test_imap(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with staged(case, tmp_path, monkeypatch) as port:
        mailbox = Mailbox(
            host=case.host, port=port, encrypted=case.tls, user="anna", password=PASSWORD, seconds=0.5
        )
        with pytest.raises(imap.FAILURES) as failure:
            imap.fetch(mailbox, "")
        said = imap.words_for(mailbox, failure.value)
    assert said == f"mailbox: {case.said.format(port=port)}"


def test_imap_with_a_wrong_password_says_nothing_of_it() -> None:
    def talk(line: socket.socket) -> None:
        line.sendall(b"* OK ready\r\n")
        with line.makefile("rb") as heard:
            while command := heard.readline():
                tag, _, words = command.decode().partition(" ")
                answer = "NO no such user or password correct-horse-battery"
                if words.startswith("CAPABILITY"):
                    line.sendall(b"* CAPABILITY IMAP4REV1\r\n")
                    answer = "OK done"
                line.sendall(f"{tag} {answer}\r\n".encode())

    with listening(talk) as port:
        mailbox = Mailbox(
            host="127.0.0.1", port=port, encrypted=False, user="anna", password=PASSWORD, seconds=2
        )
        with pytest.raises(imap.LoginRefusedError) as failure:
            imap.fetch(mailbox, "")
    said = imap.words_for(mailbox, failure.value)
    assert said == f"mailbox: login failed: wrong name or password, 127.0.0.1:{port}"
    assert PASSWORD not in repr(failure.value)


ERRORS = [
    (OSError(113, "No route to host"), "host cannot be reached, h:1"),
    (OSError(101, "Network is unreachable"), "network cannot be reached, h:1"),
    (
        OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] x"),
        "connection refused, h:1",
    ),
    (OSError(9999, "never heard of"), "connection failed, h:1"),
    (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "name server does not answer: h:1"),
    (UnicodeEncodeError("idna", "x", 0, 1, "label too long"), "name not found: h:1"),
    (ConnectionResetError(104, "reset"), "the server closed the connection, h:1"),
    (smtplib.SMTPServerDisconnected("please run connect() first"), "the server closed the connection, h:1"),
    (imaplib.IMAP4.abort("socket error: EOF"), "the server closed the connection, h:1"),
    (ExceptionGroup("both", [OSError(111, "a"), OSError(113, "b")]), "connection refused, h:1"),
    (RuntimeError("Traceback (most recent call last): <html>secret</html>"), "connection failed, h:1"),
]


@pytest.mark.parametrize(("error", "said"), ERRORS, ids=[said for _, said in ERRORS])
def test_what_cannot_be_provoked_here(error: Exception, said: str) -> None:
    assert describe_connection_error(error, "h", 1, Step.CONNECT) == said


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("mail.example", 587, "mail.example:587"),
        ("::1", 25, "[::1]:25"),
        ("mail.example", None, "mail.example"),
        ("a\r\nb", 1, "ab:1"),
    ],
)
def test_host_and_port_are_one_word(host: str, port: int | None, said: str) -> None:
    assert place(host, port) == said


def test_words_are_short_whatever_was_typed() -> None:
    assert len(describe_connection_error(OSError(111, "x"), "h" * 10_000, 1, Step.CONNECT)) <= 200


async def test_a_question_that_may_have_arrived_stays_in_doubt() -> None:
    with listening(silent) as port:
        async with open_session() as session:
            request = json_request("POST", URL(f"http://127.0.0.1:{port}/"), headers={}, payload={})
            answer = await exchange(session, request, connect=0.2, total=0.5)
    assert isinstance(answer, Unknown)
    assert answer.reason == f"no answer within 0.5 s, 127.0.0.1:{port}"
