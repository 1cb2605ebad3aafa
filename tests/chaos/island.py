"""A host of its own on this machine: a network namespace that reaches each server by a wire of its own.

Only for root. PostgreSQL is at one end of a wire that can be cut, Redis and the gateway are at the end of another.
"""

import os
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from config.embedded.postgres import NAME

IP = "/usr/sbin/ip"
POSTGRES_PORT, REDIS_PORT, GATEWAY_PORT = 5432, 6379, 8081


def possible() -> bool:
    """Return whether this user may make namespaces."""
    return os.geteuid() == 0 and os.access(IP, os.X_OK)


class Island:
    """Programs that are started with `prefix` live there, with `env` instead of the usual addresses."""

    def __init__(self, *, postgres: str, redis: str, gateway: tuple[str, int]) -> None:
        # Of this process alone: another one may run the same test on this machine.
        own = os.getpid()
        self.name = f"paceline-{own}"
        self.prefix: Sequence[str] = [IP, "netns", "exec", self.name]
        self._wires = {f"pp{own}": f"10.213.{own % 120 * 2}.1", f"pr{own}": f"10.213.{own % 120 * 2 + 1}.1"}
        self._to_postgres = f"pp{own}"
        at_postgres, at_redis = self._wires.values()
        self.env = {
            "DATABASE_URL": f"postgresql://{NAME}@{at_postgres}:{POSTGRES_PORT}/{NAME}",
            "REDIS_URL": f"redis://{at_redis}:{REDIS_PORT}/0",
        }
        self.gateway_url = f"http://{at_redis}:{GATEWAY_PORT}"
        self._proxies: list[tuple[tuple[str, int], str | tuple[str, int]]] = [
            ((at_postgres, POSTGRES_PORT), postgres),
            ((at_redis, REDIS_PORT), redis),
            ((at_redis, GATEWAY_PORT), gateway),
        ]
        self._listening: list[socket.socket] = []

    def __enter__(self) -> Self:
        _run("netns", "add", self.name)
        try:
            self._lay_wires()
            for place, to in self._proxies:
                self._listening.append(_listen(place, to))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _lay_wires(self) -> None:
        _run("-n", self.name, "link", "set", "lo", "up")
        for wire, here in self._wires.items():
            there = here[:-1] + "2"
            _run("link", "add", wire, "type", "veth", "peer", "name", f"{wire}b", "netns", self.name)
            _run("addr", "add", f"{here}/30", "dev", wire)
            _run("link", "set", wire, "up")
            _run("-n", self.name, "addr", "add", f"{there}/30", "dev", f"{wire}b")
            _run("-n", self.name, "link", "set", f"{wire}b", "up")

    def _end(self) -> None:
        for listener in self._listening:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # a thread that waits for a client would keep the port
            listener.close()
        _run("netns", "del", self.name)  # its ends of the wires, and so the wires

    def cut_postgres(self) -> None:
        """Drop all packets from now on, without a reset or a refusal."""
        _run("link", "set", self._to_postgres, "down")

    def mend(self) -> None:
        _run("link", "set", self._to_postgres, "up")


def _run(*command: str) -> None:
    subprocess.run([IP, *command], check=True, capture_output=True)


def _listen(here: tuple[str, int], to: str | tuple[str, int]) -> socket.socket:
    server = socket.create_server(here, backlog=128)
    threading.Thread(target=_accept, args=(server, to), daemon=True).start()
    return server


def _accept(server: socket.socket, to: str | tuple[str, int]) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(client, to), daemon=True).start()


def _serve(client: socket.socket, to: str | tuple[str, int]) -> None:
    with client, socket.socket(socket.AF_UNIX if isinstance(to, str) else socket.AF_INET) as other:
        try:
            other.connect(to)
        except OSError:
            return
        back = threading.Thread(target=_copy, args=(other, client), daemon=True)
        back.start()
        _copy(client, other)
        back.join()


def _copy(source: socket.socket, to: socket.socket) -> None:
    """Copy bytes until either end closes, then close both."""
    with suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    for each in (source, to):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
