"""A receiver of webhooks, as a program of a user would be: it checks signatures with the official library."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Receiver:
    """The requests that arrived; `answer` gets an event and returns the status of its answer."""

    url: str = ""
    answer: Callable[[dict[str, Any]], int] = lambda _: 200
    bodies: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    slow: float = 0.0
    drip: float = 0.0  # seconds between two bytes of an answer
    retry_after: str = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port of loopback."""
    receiver, lock, running = Receiver(), threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                running[0] += 1
                receiver.most_at_once = max(receiver.most_at_once, running[0])
            time.sleep(receiver.slow)
            status = receiver.answer(json.loads(body))
            with lock:
                running[0] -= 1
                receiver.bodies.append(body)
                receiver.headers.append(dict(self.headers))
            for byte in b"HTTP/1.1 200 OK\r\n" if receiver.drip else b"":
                with suppress(OSError):
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                time.sleep(receiver.drip)
            self.send_response(status)
            if receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            self.end_headers()
            self.wfile.write(b"Taken." if status < 300 else b"Not now.")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
