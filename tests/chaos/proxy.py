"""A TCP port in front of a server that can turn into a black hole: it takes everything and gives nothing back."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Proxy:
    """Passes bytes both ways until told to swallow them; connections stay open and new ones are accepted."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        """New connections are passed on again; those from before stay dead, as with a state that a firewall lost."""
        self._open.set()

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                taken, _ = self._listener.accept()
                self.accepted += 1
                self._sockets.append(taken)
                if self._open.is_set():
                    threading.Thread(target=self._join, args=(taken,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        try:
            far = self._connect()
        except OSError:
            near.close()
            return
        self._sockets.append(far)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        dead = False
        with suppress(OSError):
            while data := source.recv(65536):
                dead = dead or not self._open.is_set()
                if not dead:
                    sink.sendall(data)
        if not dead:
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
