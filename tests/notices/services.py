"""Chat services and a mail server on loopback, which speak as the real ones do, for real clients."""

import contextlib
import email
import email.policy
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

TOKEN = "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    body: Any


@dataclass(slots=True)
class Services:
    """The requests that arrived. `status` is of the next answers; `before` runs ahead of each answer."""

    port: int = 0
    status: int = 200
    location: str = ""
    megabytes: int = 0  # that follow an answer
    before: Callable[[], None] = lambda: None
    requests: list[Request] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def messages(self) -> list[Any]:
        """The bodies of the requests that bring a message."""
        return [each.body for each in self.requests if each.method in {"POST", "PUT"}]

    def answer_to(self, path: str) -> Any:
        """The answer as the service gives it: Matrix, Slack, or one that wants no more than a status."""
        if path.startswith("/_matrix"):
            return {"user_id": "@bot:here", "access_token": "t", "room_id": "!room:here", "event_id": "$1"}
        return "ok" if path.startswith("/services") else {}


@contextmanager
def services(tls: ssl.SSLContext | None = None) -> Iterator[Services]:
    """Run the services on a free port of loopback."""
    found = Services()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.requests.append(Request(self.command, self.path, json.loads(raw) if raw else None))
            found.before()
            answer = found.answer_to(self.path)
            body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(found.status)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Length", str(len(body) + found.megabytes * 2**20))
            self.end_headers()
            self.wfile.write(body)
            with contextlib.suppress(OSError):  # the client had enough
                for _ in range(found.megabytes):
                    self.wfile.write(b"x" * 2**20)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - named by http.server

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(slots=True)
class Mailbox:
    """The mails that arrived; `reply` is what the server says to each, `before` runs ahead of it."""

    port: int = 0
    reply: str = "250 OK"
    before: Callable[[], None] = lambda: None
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(  # noqa: N802 - named by aiosmtpd
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        if self.reply.startswith("250"):
            parsed = email.message_from_bytes(envelope.original_content or b"", policy=email.policy.default)
            assert isinstance(parsed, EmailMessage)
            self.mails.append(parsed)
        self.before()
        return self.reply


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """Run a mail server on a free port of loopback."""
    found = Mailbox()
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as free:  # the controller cannot use a port that the system chooses
        found.port = free.getsockname()[1]
    controller = Controller(found, hostname="127.0.0.1", port=found.port)
    controller.start()
    try:
        yield found
    finally:
        controller.stop()
