"""Shares the embedded servers between programs: the first user starts them, the last one stops them.

Every user holds a shared lock on `servers.lock`. Starting and stopping happen under an exclusive lock on
`start.lock`, and so does every change to the first one; the kernel drops the locks of a killed process.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.embedded.place import make_home
from config.embedded.process import explaining
from config.embedded.server import Server


@contextmanager
def using(home: Path, wanted: Sequence[Server], everything: Sequence[Server]) -> Iterator[list[Server]]:
    """Run the `wanted` servers while inside, and yield those started now; the last user stops all."""
    with explaining(home):
        make_home(home)
        users = _open(home / "servers.lock")
    try:
        with explaining(home), _alone(home):
            fcntl.flock(users, fcntl.LOCK_SH)
            started = [server for server in wanted if server.start()]
        yield started
    finally:
        with explaining(home), _alone(home):
            if _is_last(users):
                stop_all(everything)
            _unlock(users)


@contextmanager
def unused(home: Path) -> Iterator[bool]:
    """Prevent every start while inside; yield whether no program uses the servers."""
    with explaining(home):
        users = _open(home / "servers.lock")
    with _alone(home):
        try:
            yield _is_last(users)
        finally:
            _unlock(users)


def stop_all(servers: Sequence[Server]) -> list[Server]:
    """Stop the servers in order, and return those that ran."""
    return [server for server in servers if server.stop()]


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    lock = _open(home / "start.lock")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        _unlock(lock)


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _unlock(lock: int) -> None:
    # Not left to close(): a forked child may hold the same open file, and with it the lock.
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)
