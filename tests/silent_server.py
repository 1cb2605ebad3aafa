"""A server that accepts connections and answers nobody, until a test lets go of all of them."""

import socket
import threading
from types import TracebackType
from typing import Self


class SilentServer:
    """Counts who has asked; `let_go` closes every connection, and those that come later at once."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._held: list[socket.socket] = []
        self._changed = threading.Condition()
        self._over = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def held(self) -> int:
        with self._changed:
            return len(self._held)

    def wait_for(self, count: int, *, seconds: float) -> bool:
        """Wait until so many hang; returns whether they do."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._held) >= count, seconds)

    def let_go(self) -> None:
        with self._changed:
            self._over = True
            for each in self._held:
                each.close()
            self._held.clear()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                if self._over:
                    taken.close()
                else:
                    self._held.append(taken)
                self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()
        self._listener.close()
