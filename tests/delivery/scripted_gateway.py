"""A gateway that speaks the sandbox's language and does what a test tells it, from one request to the next."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    retry_after: float | None = None


TOOK = Said(status=201, body={"id": "m1"})
WORKS = Said(status=200, body={"state": "WORKING"})
BROKEN = Said(status=500, body={"message": "the database is away"})
REFUSED = Said(status=500, body={"accepted": False, "message": "the database is away"})
BUSY = Said(status=503, body={"error": "not_connected", "message": "the phone is away"})
TOO_FAST = Said(status=429, body={"error": "rate_limited"})

Answers = Callable[[str], Said]  # by the address that a message is for


class ScriptedGateway:
    """Answers messages with `answers(to)` and questions about the account with `state`; keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: Answers = lambda _: TOOK
        self.state = WORKS
        self.asked: list[str] = []  # the address of every message, in the order of receipt
        self.took: list[str] = []
        self.looked = 0  # how often somebody asked how the account is
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._server = self._open(0)
        self.port = int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Refuse every connection from now on."""
        self._server.shutdown()
        self._server.server_close()

    def start(self) -> None:
        """Listen again, at the same port."""
        self._server = self._open(self.port)

    def message(self, to: str) -> Said:
        with self._lock:
            self.asked.append(to)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        said = self.answers(to)
        with self._lock:
            self._now -= 1
            if said is TOOK:
                self.took.append(to)
        return said

    def _open(self, port: int) -> ThreadingHTTPServer:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                self._say(gateway.message(told["to"]))

            def do_GET(self) -> None:
                if "/numbers/" in self.path:
                    self._say(Said(status=200, body={"exists": True}))
                    return
                gateway.looked += 1
                self._say(gateway.state)

            def _say(self, said: Said) -> None:
                content = json.dumps(said.body).encode()
                self.send_response(said.status)
                self.send_header("Content-Length", str(len(content)))
                if said.retry_after is not None:
                    self.send_header("Retry-After", str(said.retry_after))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
