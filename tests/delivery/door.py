"""A door in front of the gateway: it can keep connections, requests or answers waiting."""

import select
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

LONGEST = 30.0  # seconds that anything is kept waiting


class Door:
    """A TCP proxy to `url`. What contains `hold` waits until `let_go`; a closed door lets nobody connect."""

    def __init__(self, url: str, *, hold: bytes = b"", closed: bool = False) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "", parts.port or 80)
        self._hold = hold
        self.reached = threading.Event()  # something that is to wait has come
        self._released = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=0 if closed else 128)
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._waiting = self._fill() if closed else []
        if not closed:
            self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.close()
        for each in self._waiting:
            each.close()

    def open(self) -> None:
        """Let everybody in: whoever waits connects when the kernel tries again, in a second or two."""
        for each in self._waiting:
            each.close()
        threading.Thread(target=self._accept, daemon=True).start()

    def let_go(self) -> None:
        self._released.set()

    def _fill(self) -> list[socket.socket]:
        """Take all places of the queue: from now on the kernel answers nobody who wants to connect."""
        taken = []
        while True:
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(self._server.getsockname())
            taken.append(each)
            if not select.select([], [each], [], 0.2)[1]:
                return taken

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._to) as gateway:
            back = threading.Thread(target=_copy, args=(gateway, client), daemon=True)
            back.start()
            self._forward(client, gateway)
            back.join(LONGEST)

    def _forward(self, client: socket.socket, gateway: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                if self._hold and self._hold in data:
                    self.reached.set()
                    self._released.wait(LONGEST)
                gateway.sendall(data)
            gateway.shutdown(socket.SHUT_WR)
        except OSError:
            return


def _copy(source: socket.socket, to: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        return
