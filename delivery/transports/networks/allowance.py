"""Limits the time and memory that a server may use, however slowly or quickly it sends.

The timeout of a socket begins again with every byte that comes: a server that sends one now and then could hold a
thread for ever. Here the time of a whole answer is counted, and its bytes.
"""

import io
import socket
import time
from collections.abc import Callable
from typing import Any

PIECE = 16 * 1024  # bytes that are sent at once: TLS restarts its timeout with each record


class Allowance:
    """The time and the bytes that a server may still use; renewed for every answer, or once for all of them."""

    def __init__(self, *, until: float, most_bytes: int) -> None:
        self.renew(until=until, most_bytes=most_bytes)

    def renew(self, *, until: float, most_bytes: int) -> None:
        """Allow this many bytes until a moment of the monotonic clock."""
        self._until, self._bytes = until, most_bytes

    def apply(self, line: socket.socket) -> None:
        """Limit the next step of the socket to the time that is left; raise TimeoutError."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        line.settimeout(left)

    def count(self, number: int) -> None:
        """Count bytes that came; raise OSError where there are too many."""
        self._bytes -= number
        if self._bytes < 0:
            raise OSError("the server sends too much")

    def send(self, line: socket.socket, content: bytes, send: Callable[[bytes], Any]) -> None:
        """Pass the content to `send` piece by piece; raise TimeoutError."""
        for start in range(0, len(content), PIECE):
            self.apply(line)
            send(content[start : start + PIECE])


class _Reading(io.RawIOBase):
    def __init__(self, line: socket.socket, allowance: Allowance) -> None:
        super().__init__()
        self._line, self._allowance = line, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._allowance.apply(self._line)
        number = self._line.recv_into(buffer)
        self._allowance.count(number)
        return number


def reader(line: socket.socket, allowance: Allowance) -> io.BufferedReader:
    """Return a file as `socket.makefile` does, within the allowance."""
    return io.BufferedReader(_Reading(line, allowance))
