"""Paceline as it is served: Daphne in a process of its own, on the database and the Redis of the test.

Django's live server knows no sockets.
"""

import os
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from django.conf import settings
from django.db import connection

from tests.config.programs import PROJECT

STARTS_WITHIN = 30.0  # seconds


class Site:
    """Can be stopped and started again on the same port, as a deployment does."""

    def __init__(self, **extra: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._env = os.environ | {"DEBUG": "true", "LOG_LEVEL": "ERROR", "DATABASE_POOL": "6"} | extra
        self._env |= {"DATABASE_URL": _database_url(), "REDIS_URL": settings.REDIS_URL}
        self.start()

    def start(self) -> None:
        """Returns when requests are answered."""
        command = ["daphne", "-b", "127.0.0.1", "-p", str(self.port), "config.asgi:application"]
        self._process = subprocess.Popen([sys.executable, "-m", *command], cwd=PROJECT, env=self._env)
        deadline = time.monotonic() + STARTS_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"Daphne did not start: exit code {self._process.returncode}.")
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _database_url() -> str:
    """The test's database as libpq writes it, sockets included."""
    parts = connection.settings_dict
    where = urlencode({"host": parts["HOST"], "port": parts["PORT"]})
    return f"postgresql://{quote(parts['USER'])}:{quote(parts['PASSWORD'])}@/{parts['NAME']}?{where}"
