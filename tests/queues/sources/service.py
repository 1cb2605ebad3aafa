"""A web service on a free port of loopback, whose answers a test can spoil: the base of Notion's and Google's."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that arrived."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}

    def value(self, name: str, otherwise: str = "") -> str:
        return self.query.get(name, [otherwise])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer; `cut` closes the connection in the middle of it, `late` first does what was asked and then says it."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut: bool = False
    late: bool = False


# Looks at a request before the service does: gives the answer instead of it, or None to let it pass.
Fault = Callable[[Asked], Answer | None]


class Service:
    """Answers requests one by one, as `answer` of a subclass says, and remembers them."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.lock = threading.RLock()
        self._faults: list[tuple[Fault, list[int]]] = []

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def spoil(self, fault: Fault, *, times: int = 1_000_000) -> None:
        """Let a fault answer as often as given; it does not count the requests that it lets pass."""
        with self.lock:
            self._faults.append((fault, [times]))

    def heal(self) -> None:
        """Take every fault back."""
        with self.lock:
            self._faults.clear()

    def count(self, method: str, part: str) -> int:
        """Return how many requests of a method had a part in their path."""
        with self.lock:
            return sum(asked.method == method and part in asked.path for asked in self.asked)

    def handle(self, asked: Asked) -> Answer:
        with self.lock:
            self.asked.append(asked)
        spoilt = self._spoilt(asked)
        if spoilt is not None and not spoilt.late:
            return spoilt
        with self.lock:
            done = self.answer(asked)
        return spoilt or done

    def _spoilt(self, asked: Asked) -> Answer | None:
        with self.lock:
            faults = list(self._faults)
        for fault, left in faults:
            if left[0] > 0 and (found := fault(asked)) is not None:
                left[0] -= 1
                return found
        return None


@contextmanager
def serving(service: Service) -> Iterator[None]:
    """Run the service until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            address = urlsplit(self.path)
            asked = Asked(
                method=self.command,
                path=unquote(address.path),
                query=parse_qs(address.query, keep_blank_values=True),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
            )
            self._say(service.handle(asked))

        def _say(self, answer: Answer) -> None:
            body = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if answer.cut else body)
            if answer.cut:
                self.close_connection = True

        do_GET = do_POST = do_PATCH = _handle  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
