"""A gateway in a thread of its own that answers every request alike: with a status, with silence, or not at all."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FaultyGateway:
    """A gateway whose next answer a test chooses: a status with a body, or none while it `hangs`."""

    def __init__(self) -> None:
        self.status = 200
        self.body: Any = {}
        self.headers: Mapping[str, str] = {}
        self.hangs = False
        self.asked = 0
        self._over = threading.Event()
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                gateway.answer(self)

            def do_GET(self) -> None:
                gateway.answer(self)

            def log_message(self, *args: object) -> None:
                """Say nothing: the test looks at what the gateway was asked."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def say(self, status: int, body: Any = None, **headers: str) -> None:
        self.status, self.body, self.headers = status, body if body is not None else {}, headers

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked += 1
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if self.hangs:
            self._over.wait(60)
            return
        content = json.dumps(self.body).encode()
        request.send_response(self.status)
        for name, value in {"Content-Length": str(len(content)), **self.headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    def answer_now(self) -> None:
        """Let those go who were left waiting."""
        self.hangs = False
        self._over.set()

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Close the port: whoever connects from now on is refused. Safe to repeat."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def faulty_gateway() -> Iterator[FaultyGateway]:
    gateway = FaultyGateway()
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()
