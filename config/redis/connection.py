"""Connections to Redis that give up within seconds, whatever the network does.

redis-py bounds each connect and each read, but not the sum: a name that does not resolve, several addresses
behind one name, a TLS handshake, and then the same again for every idle connection of the pool. Here the whole
connect has one deadline. An address that timed out is not tried again for a moment, so that a page or a pump waits
for a silent server once and not with every call.
"""

import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from redis.exceptions import ConnectionError as NoConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoAnswerError

from config.deadline import within

T = TypeVar("T")

CONNECT_SECONDS = 2.0
LEFT_ALONE = 2.0  # seconds after a timeout in which the address is not tried
# A server that is up and refuses to work: full, unable to save, a replica, still loading, or cut off.
REFUSALS = frozenset({"OOM", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"})


class RedisRefusesError(NoConnectionError):
    """Raised when Redis answers, but refuses all work for now."""


class Silence:
    """Remembers which addresses did not answer a moment ago."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def heard_nothing(self, address: str) -> None:
        self._until[address] = time.monotonic() + LEFT_ALONE

    def lasts(self, address: str) -> bool:
        return time.monotonic() < self._until.get(address, 0.0)

    def forget(self) -> None:
        self._until.clear()


silence = Silence()


class Bounded:
    """A mixin before a connection class of redis-py: limits the time to connect, and remembers silent addresses."""

    def _connect(self) -> socket.socket:
        address = self._address()
        if silence.lasts(address):
            raise OSError(f"{address} did not answer a moment ago")
        try:
            made: socket.socket = within(
                CONNECT_SECONDS,
                super()._connect,  # type: ignore[misc]
                too_late=socket.socket.close,
            )
        except TimeoutError:
            silence.heard_nothing(address)
            raise
        return made

    def send_packed_command(self, *arguments: Any, **options: Any) -> None:
        if silence.lasts(self._address()):
            self.disconnect()  # type: ignore[attr-defined]
            raise NoConnectionError(f"{self._address()} did not answer a moment ago")
        self._noting(super().send_packed_command, *arguments, **options)  # type: ignore[misc]

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        return self._noting(super().read_response, *arguments, **options)  # type: ignore[misc]

    def _noting(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return call(*arguments, **options)
        except NoAnswerError:
            if "timeout" not in options:  # otherwise the caller waited for a message that need not come
                silence.heard_nothing(self._address())
            raise

    def _address(self) -> str:
        return str(self._host_error())  # type: ignore[attr-defined]


class Refusable(Bounded):
    """A mixin for the broker: a server that refuses to work counts as away, so that Celery waits."""

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().read_response(*arguments, **options)
        except ResponseError as error:
            if not refuses(error):
                raise
            self.disconnect()  # type: ignore[attr-defined]
            raise RedisRefusesError(str(error)) from error


def refuses(error: ResponseError) -> bool:
    """Decide whether the server refuses all work now, as opposed to not understanding this command.

    redis-py cuts the first word off the errors that it knows, and keeps it as their code.
    """
    text = str(error)
    return (error.status_code or text.partition(" ")[0]) in REFUSALS or any(
        f"-{w} " in text for w in REFUSALS
    )


class TcpConnection(Bounded, redis.Connection):
    """A connection over the network."""


class TlsConnection(Bounded, redis.SSLConnection):
    """An encrypted connection over the network."""


class SocketConnection(Bounded, redis.UnixDomainSocketConnection):
    """A connection to a server on this machine."""


CLASSES = {"redis": TcpConnection, "rediss": TlsConnection, "unix": SocketConnection}
