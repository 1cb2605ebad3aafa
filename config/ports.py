"""Chooses the ports that `make run` serves on, and keeps other runs away from them until they are in use."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from config.embedded.place import is_free
from config.embedded.process import StartError

HIGHEST = 65535


@contextmanager
def reserved(usual: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Yield a port for each name: the one that the environment asks for, or the first free one from the usual on.

    Between this choice and the first request the servers start and the database is migrated. A run of another
    checkout that starts meanwhile must not choose the same ports, so each is marked: the UDP port of the same number
    is bound while inside, and every run looks for such marks. TCP stays free for the server. The system removes the
    mark with the process, however that ends.
    """
    with ExitStack() as marks:
        asked_first = sorted(usual, key=lambda name: not os.environ.get(name))
        yield {
            name: _reserve(name, usual[name], marks.enter_context(socket.socket(type=socket.SOCK_DGRAM)))
            for name in asked_first
        }


def _reserve(name: str, usual: int, mark: socket.socket) -> int:
    given = os.environ.get(name)
    if not given:
        return next(port for port in range(usual, HIGHEST + 1) if _taken_by(mark, port))
    if not given.isdecimal() or not 0 < int(given) <= HIGHEST:
        raise StartError(f"{name} is {given!r}: it must be a number from 1 to {HIGHEST}.")
    if not _taken_by(mark, int(given)):
        raise StartError(
            f"Port {given} is in use: stop the program that uses it, or set {name} to another port, "
            f"or leave {name} empty to get a free one."
        )
    return int(given)


def _taken_by(mark: socket.socket, port: int) -> bool:
    """Mark the port, and return whether it was free."""
    if not is_free(port):
        return False
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
