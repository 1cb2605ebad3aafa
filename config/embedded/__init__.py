"""Real PostgreSQL and Redis servers for a machine that has none, kept under `var/`.

Where DATABASE_URL or REDIS_URL is set, it names another server, and that server is not started here.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from config.embedded.addresses import database_settings
from config.embedded.place import home_of, var_folder
from config.embedded.postgres import Postgres
from config.embedded.process import StartError
from config.embedded.redis_server import Redis
from config.embedded.server import Server
from config.embedded.sharing import using

__all__ = ["StartError", "Urls", "database_settings", "servers", "urls", "var_folder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Urls:
    """The addresses of the two servers."""

    database: str
    redis: str


def urls(var: Path | None = None) -> Urls:
    """Return the addresses of the embedded servers of `var`, whether they run or not."""
    home = home_of(var.resolve() if var else var_folder())
    return Urls(database=Postgres(home).url, redis=Redis(home).url)


@contextmanager
def servers(var: Path | None = None) -> Iterator[Urls]:
    """Run the servers that no URL in the environment replaces; while inside, the environment has both URLs."""
    folder = var.resolve() if var else var_folder()
    home = home_of(folder)
    everything: dict[str, Server] = {"REDIS_URL": Redis(home), "DATABASE_URL": Postgres(home)}
    wanted = {name: server for name, server in everything.items() if not os.environ.get(name)}
    if not wanted:
        yield _from_environment()
        return
    with _exit_on_terminate(), using(home, [*wanted.values()], [*everything.values()]) as started:
        if started and home != folder:
            _say(f"The user that PostgreSQL runs as cannot enter {folder}: the servers' data is in {home}.")
        with _environment({name: server.url for name, server in wanted.items()}):
            yield _from_environment()


def _from_environment() -> Urls:
    return Urls(database=os.environ["DATABASE_URL"], redis=os.environ["REDIS_URL"])


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)


@contextmanager
def _exit_on_terminate() -> Iterator[None]:
    """Make SIGTERM unwind the program, so that the last user of the servers stops them."""
    unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unhandled or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _say(sentence: str) -> None:
    sys.stderr.write(f"paceline: {sentence}\n")
