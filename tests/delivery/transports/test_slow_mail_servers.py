"""Mail servers that never end: one that sends a byte now and then, and one that sends without an end."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest

from delivery.outcomes import Unreachable
from delivery.transports.mail import imap
from delivery.transports.mail.imap import Mailbox
from delivery.transports.mail.smtp import Server, SmtpConnections

pytestmark = pytest.mark.usefixtures("_no_leftovers")

SECONDS = 0.5
PATIENCE = 10.0  # of a test: a server that is not given up sends for a minute


@pytest.fixture
def _no_leftovers() -> Iterator[None]:
    yield
    assert not [
        thread for thread in threading.enumerate() if thread.name == "slow-server" and _waited(thread)
    ]


def _waited(thread: threading.Thread) -> bool:
    thread.join(PATIENCE)
    return thread.is_alive()


@contextmanager
def sending(pieces: Callable[[], Iterator[bytes]], *, every: float) -> Iterator[int]:
    """The port of a server that sends these pieces to whoever connects, for at most a minute."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                ends = time.monotonic() + 60
                for piece in pieces():
                    try:
                        line.sendall(piece)
                    except OSError:
                        return  # it was given up
                    time.sleep(every)
                    if time.monotonic() > ends:
                        return

        threading.Thread(target=serve, name="slow-server", daemon=True).start()
        yield int(listener.getsockname()[1])


def connections(port: int) -> SmtpConnections:
    return SmtpConnections(
        Server(
            host="127.0.0.1",
            port=port,
            security="none",
            user="",
            password="",
            our_name="school.example",
            connect_seconds=SECONDS,
            safe=str,
        )
    )


def mailbox(port: int) -> Mailbox:
    return Mailbox(host="127.0.0.1", port=port, encrypted=False, user="u", password="p", seconds=SECONDS)


def drip() -> Iterator[bytes]:
    return repeat(b"2")


def dripped_lines() -> Iterator[bytes]:
    yield b"220 hello\r\n"
    while True:
        yield b"250-x\r\n"


def flood() -> Iterator[bytes]:
    yield b"220 hello\r\n"
    while True:
        yield b"250-" + b"x" * 400 + b"\r\n" + (b"250-" + b"x" * 400 + b"\r\n") * 1000


@pytest.mark.parametrize("pieces", [drip, dripped_lines])
def test_a_mail_server_that_drips_is_given_up_in_time(pieces: Callable[[], Iterator[bytes]]) -> None:
    with sending(pieces, every=SECONDS / 5) as port:
        began = time.monotonic()
        assert isinstance(connections(port).try_out(seconds=SECONDS), Unreachable)
        assert time.monotonic() - began < PATIENCE / 2


def test_a_mail_server_that_floods_is_given_up() -> None:
    with sending(flood, every=0) as port:
        began = time.monotonic()
        assert isinstance(connections(port).try_out(seconds=60), Unreachable)
        assert time.monotonic() - began < PATIENCE


def dripped_mailbox() -> Iterator[bytes]:
    yield b"* OK hello\r\n"
    while True:
        yield b"* 1 EXISTS\r\n"


@pytest.mark.parametrize("pieces", [drip, dripped_mailbox])
def test_a_mailbox_that_drips_is_given_up_in_time(pieces: Callable[[], Iterator[bytes]]) -> None:
    with sending(pieces, every=SECONDS / 5) as port:
        began = time.monotonic()
        with pytest.raises(imap.FAILURES):
            imap.fetch(mailbox(port), "")
        assert time.monotonic() - began < PATIENCE


def test_a_mailbox_that_floods_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "MOST_IN_ALL", 100_000)
    monkeypatch.setattr(imap, "LONGEST_VISIT", 100)
    with sending(lambda: repeat(b"* OK hello\r\n" + b"* 1 EXISTS\r\n" * 1000), every=0) as port:
        began = time.monotonic()
        with pytest.raises(imap.FAILURES):
            imap.fetch(mailbox(port), "")
        assert time.monotonic() - began < PATIENCE
