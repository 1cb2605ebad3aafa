"""A push service on a free port: takes what is pushed, answers as it is told."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class PushService:
    """`answer` is the status of the next answers; `pushed` is what came."""

    answer: int = 201
    location: str = ""  # where a redirect leads
    pushed: list[Pushed] = field(default_factory=list)

    def __post_init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.pushed.append(
                    Pushed(path=self.path, headers={k.lower(): v for k, v in self.headers.items()}, body=body)
                )
                self.send_response(outer.answer)
                self.send_header("Content-Length", "0")
                if outer.location:
                    self.send_header("Location", outer.location)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quietly."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._made = 0
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def address(self) -> str:
        """Return the address of another browser each time."""
        self._made += 1
        return f"{self.origin}/browser/{self._made}"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
