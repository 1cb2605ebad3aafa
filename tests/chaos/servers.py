"""A PostgreSQL and a Redis of these tests' own, to be killed and started again."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from config.embedded.postgres import Postgres
from config.embedded.process import until
from config.embedded.redis_server import Redis
from config.embedded.server import Server

GONE_WITHIN = 30.0  # seconds


class Servers:
    """The two servers in a separate folder, over sockets that stay the same through every restart."""

    def __init__(self) -> None:
        # In the short temporary folder, since the path of a socket may have 107 bytes at most; not private,
        # since PostgreSQL runs as another user where the tests run as root.
        self.home = Path(tempfile.mkdtemp(prefix="paceline-chaos-"))
        self.home.chmod(0o711)
        self.postgres = Postgres(self.home)
        self.redis = Redis(self.home)

    def start(self) -> None:
        self.redis.start()
        self.postgres.start()

    def remove(self) -> None:
        """Stop both and delete their data."""
        for server in (self.redis, self.postgres):
            server.stop()
        shutil.rmtree(self.home)

    def kill_redis(self) -> None:
        _end(self.redis, signal.SIGKILL)

    def lose_redis_data(self) -> None:
        """Delete the data of a stopped Redis, as if its disk were empty."""
        shutil.rmtree(self.redis.data)

    def crash_postgres(self) -> None:
        """PostgreSQL's immediate shutdown: every session is cut, nothing is written, recovery at the start."""
        _end(self.postgres, signal.SIGQUIT)

    @contextmanager
    def frozen_postgres(self) -> Iterator[None]:
        """PostgreSQL stands still, with every session: it answers late, and knows nothing of it."""
        pid = self.postgres.pid()
        assert pid is not None, "PostgreSQL is not running."
        frozen = [pid, *_children(pid)]
        for each in frozen:
            _signal(each, signal.SIGSTOP)
        try:
            yield
        finally:
            for each in frozen:
                _signal(each, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found]


def _signal(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, which)


def _end(server: Server, how: signal.Signals) -> None:
    pid = server.pid()
    assert pid is not None, f"{server.name} is not running."
    os.kill(pid, how)
    assert until(lambda: server.pid() is None, seconds=GONE_WITHIN), f"{server.name} does not end."
