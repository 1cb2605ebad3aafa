"""A service that answers what a test tells it, over real HTTP, and remembers what it was asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Service:
    """`answers` are status and body by method and path; for any other, `missing` is the answer."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.missing: tuple[int, Any] = 404, {"message": "not found"}
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    def answer(self, method: str, path: str) -> tuple[int, Any]:
        self.asked.append((method, path))
        return self.answers.get((method, path), self.missing)


@contextmanager
def serving() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = service.answer(self.command, self.path.partition("?")[0])
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _do  # noqa: N815 - the names that http.server asks for

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
