"""Looks up the names of servers, in threads that owners share.

A lookup cannot be interrupted. Where the server of a name's domain never answers, it holds its thread for half a
minute or longer, and an event loop has only a few threads for all lookups. So one owner's names could keep everybody
else's connections waiting, and a page would wait for lookups that it gave up long ago.
"""

import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from config.shares import SharedThreads
from delivery.transports.networks.allowed import AddressNotAllowedError, AllowedNetworks

Found = tuple[Any, ...]  # one answer of `getaddrinfo`

_threads = SharedThreads(total=64, each=16, name="names")
_owner: ContextVar[int] = ContextVar("owner_of_lookups", default=0)


@contextmanager
def on_behalf_of(owner: int) -> Iterator[None]:
    """Count the lookups made in this context as the owner's."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


def look_up(host: str, port: int, *, seconds: float) -> Sequence[Found]:
    """Return the addresses of a host; raise OSError, also where there is no answer in time."""
    looking = start_looking_up(host, port)
    try:
        return looking.result(seconds)
    except TimeoutError:
        looking.cancel()
        raise


def connect(networks: AllowedNetworks, host: str, port: int, timeout: float) -> socket.socket:
    """Connect to the first of the host's addresses that is allowed and answers; raise OSError."""
    deadline = time.monotonic() + timeout
    failure: OSError = AddressNotAllowedError()
    for *_, place in look_up(host, port, seconds=timeout):
        try:
            networks.require(str(place[0]))
            left = max(deadline - time.monotonic(), 0.001)  # for all of the host's addresses together
            return socket.create_connection((str(place[0]), port), left)
        except OSError as error:
            failure = error
    raise failure


def start_looking_up(
    host: str, port: int, family: int = socket.AF_UNSPEC, flags: int = 0
) -> "Future[Sequence[Found]]":
    """Look a host up in a thread of its owner's; the arguments are those of `getaddrinfo`."""
    return _threads.submit(
        _owner.get(),
        lambda: socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=flags),
    )
