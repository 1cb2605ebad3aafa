"""The base of PostgreSQL and Redis as embedded servers."""

import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from config.embedded.place import fits_socket
from config.embedded.process import StartError, alive, until, works_in

START_SECONDS = 120  # crash recovery of a large database may take long
STOP_SECONDS = 60
LOG_BYTES = 10_000_000


class Server(ABC):
    """One server with its data under `home`.

    It is reached over a unix socket in its data folder, or over a loopback port where that path is too long.
    """

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    def __init__(self, home: Path, folder: str, socket_name: str) -> None:
        self.home = home
        self.data = home / folder
        self.log = home / f"{folder}.log"
        self.socket = self.data / socket_name
        self.on_socket = fits_socket(self.socket)

    @property
    @abstractmethod
    def url(self) -> str:
        """Return the server's address, whether it runs or not."""

    @abstractmethod
    def ready(self) -> bool:
        """Return whether the server takes commands."""

    @abstractmethod
    def pid(self) -> int | None:
        """Return the process of this server, if it is alive."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder ready for a start."""

    @abstractmethod
    def launch(self) -> int:
        """Start the process and return its id."""

    def start(self) -> bool:
        """Make sure that the server takes commands; return False if it did already."""
        if self.ready():
            return False
        self._settle_old()
        self.prepare()
        self._trim_log()
        for pause in (0.5, 2.0, 0.0):
            reason = self._attempt()
            if not reason:
                return True
            # The remains of a killed server may take a moment to go: its children, their shared memory.
            time.sleep(pause)
        raise StartError(f"{self.name} did not start: {reason} Its log is {self.log}.")

    def stop(self) -> bool:
        """Stop the server cleanly; return False if it was not running."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, self.stop_signal)
        if not until(lambda: not works_in(pid, self.data), seconds=STOP_SECONDS):
            raise StartError(f"{self.name} (process {pid}) did not stop within {STOP_SECONDS} seconds.")
        return True

    def connect(self, port: int) -> socket.socket:
        """Return a connection that tests whether the server is there; raise OSError if it is not."""
        family = socket.AF_UNIX if self.on_socket else socket.AF_INET
        connection = socket.socket(family)
        connection.settimeout(5)
        try:
            connection.connect(str(self.socket) if self.on_socket else ("127.0.0.1", port))
        except OSError:
            connection.close()
            raise
        return connection

    def accepts(self, port: int) -> bool:
        """Return whether something listens at the server's address."""
        try:
            with closing(self.connect(port)):
                return True
        except OSError:
            return False

    def _settle_old(self) -> None:
        """Wait for a server that is still starting or stopping; end one that cannot be reached."""
        if self.pid() is None:
            return
        until(lambda: self.ready() or self.pid() is None or self._lost_socket(), seconds=START_SECONDS)
        if not self.ready():
            self.stop()

    def _lost_socket(self) -> bool:
        return self.on_socket and not self.socket.exists()

    def _attempt(self) -> str:
        """Launch once; return an empty text for success, else the reason in the server's words."""
        if self.ready():
            return ""
        written = self.log.stat().st_size if self.log.exists() else 0
        pid = self.launch()
        until(lambda: self.ready() or not alive(pid), seconds=START_SECONDS)
        return "" if self.ready() else self._complaint(written)

    def _complaint(self, since: int) -> str:
        with self.log.open("rb") as log:
            log.seek(since)
            lines = log.read().decode(errors="replace").splitlines()
        return next((line for line in lines if "FATAL" in line or "#" in line), "it said nothing.")

    def _trim_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.old"))
