"""A network between client and server that loses answers, on purpose."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

SHOWN = ("content-type", "retry-after", "idempotency-replayed")


class LosingNetwork(ThreadingHTTPServer):
    """Passes requests on, and loses the answers to the next `lost` POSTs with an Idempotency-Key."""

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.server, self.lost, self.passed = server, 0, 0
        self.names: list[str] = []
        self.done = threading.Event()  # an answer was lost

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LosingNetwork

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        answer = httpx.request(self.command, self.server.server + self.path, content=body, headers=headers)
        if name := self.headers.get("Idempotency-Key"):
            self.server.names.append(name)
            if self.server.lost:
                self.server.lost -= 1
                self.server.done.set()
                self.close_connection = True
                return
        self.send_response(answer.status_code)
        for shown in SHOWN:
            if shown in answer.headers:
                self.send_header(shown, answer.headers[shown])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def losing_network(server: str) -> Iterator[LosingNetwork]:
    network = LosingNetwork(server)
    thread = threading.Thread(target=network.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield network
    finally:
        network.shutdown()
        thread.join()
        network.server_close()
