"""Starts the Python programs of the Procfile as copies of one process that has loaded what all of them use.

Web, worker and beat load the same libraries: 60 MB and a second of work each. Here they are loaded once. The copies
share that memory for as long as they do not write to it.

Only libraries are loaded before: the settings depend on which program reads them, and nothing here may start a thread
or open a connection, which a copy would share.
"""

import gc
import os
import re
import runpy
import shlex
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn, Self

SHARED = (
    *("celery.app.base", "celery.app.amqp", "celery.app.log", "celery.bin.celery", "celery.signals"),
    *(
        "kombu.transport.redis",
        "redis.asyncio",
        "psycopg_pool",
        "psycopg.types.json",
        "psycopg.types.multirange",
    ),
    *("django.core.management", "django.core.serializers.json", "django.db.models", "django.forms"),
    *(
        "django.template.backends.django",
        "django.contrib.postgres.fields.jsonb",
        "django.db.backends.postgresql.base",
    ),
    *("aiohttp", "cryptography.fernet", "jwt", "requests", "structlog", "phonenumbers", "yaml"),
)
NAME_LENGTH = 15  # of a process, for Linux


class Copy:
    """A program in a copy of this process, with as much of `Popen` as its supervisor uses."""

    def __init__(self, pid: int, output: IO[bytes]) -> None:
        self.pid, self.stdout = pid, output
        self._code: int | None = None
        self._waiting = threading.Lock()  # one thread waits for it, and another one looks whether it runs

    def poll(self) -> int | None:
        """Return its exit code; None while it runs, or while another thread waits for its end."""
        if self._code is None and self._waiting.acquire(blocking=False):
            try:
                self._wait(os.WNOHANG)
            finally:
                self._waiting.release()
        return self._code

    def wait(self) -> int:
        with self._waiting:
            self._wait(0)
        assert self._code is not None  # noqa: S101 - for types: it waited
        return self._code

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _wait(self, how: int) -> None:
        """Ask the system once for the exit code: afterwards it has forgotten the process."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, how)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)


def load_shared() -> None:
    """Load the libraries; one that is not installed is left to the programs."""
    gc.disable()  # a look for garbage writes to every object, also in the copies
    for name in SHARED:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()


def start(name: str, command: str, *, before: Sequence[Copy] = ()) -> Copy | None:
    """Start a line of the Procfile; return None for one that is no Python program of this environment.

    To be called before any thread is started, with the copies that run already. In the copy this does not return: the
    program runs, then the copy ends.
    """
    words = [expanded(word, os.environ) for word in shlex.split(command)]
    module = _module(words)
    if module is None:
        return None
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        return Copy(pid, os.fdopen(reading, "rb"))
    os.close(reading)
    for other in before:  # or nobody would hear of it when the reader of that output has gone
        other.stdout.close()
    _become(name, writing)
    return _run(module, words)


def expanded(word: str, values: Mapping[str, str]) -> str:
    """Replace $NAME and ${NAME:-default} as a shell does."""
    return re.sub(
        r"\$(?:(\w+)|\{(\w+):-([^}]*)\})",
        lambda found: values.get(found[1] or found[2], "") or found[3] or "",
        word,
    )


def _module(words: Sequence[str]) -> str | None:
    """Return the module that a command runs."""
    match words:
        case ["celery", *_]:
            return "celery"
        case ["daphne", *_]:
            return "daphne"
        case ["python", "-m", module, *_]:
            return module
    return None


def _become(name: str, output: int) -> None:
    """Detach from this program's session, output and signals."""
    os.setsid()
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name[:NAME_LENGTH])
    gc.enable()


def _run(module: str, words: Sequence[str]) -> NoReturn:
    """Run the program as its own command does, and end this process with it."""
    arguments = words[3:] if words[0] == "python" else words[1:]
    program = str(Path(sys.prefix) / "bin" / words[0])
    sys.argv = [program, *arguments]
    if module == "daphne":
        from daphne.cli import CommandLineInterface  # noqa: PLC0415

        CommandLineInterface.entrypoint()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=False)
    sys.exit()
