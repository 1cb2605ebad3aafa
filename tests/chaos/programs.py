"""Workers and beat as real processes, each in a process group of its own, so that all of it can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ENDS_WITHIN = 60.0  # seconds; a worker lands what is in the air first
SHOWN = 6000  # characters of a log's end


class Program:
    """A process that was started here, with what it says in a file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        prefix: Sequence[str] = (),
        project: Path = PROJECT,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", *command],
                cwd=project,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, to the program and all its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(ENDS_WITHIN)

    def freeze(self) -> None:
        """Stop the program as on a suspended machine: afterwards it does not know that time has passed."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM, as a deployment sends it."""
        self._process.terminate()

    def exit_code(self) -> int:
        """Wait for its end."""
        return self._process.wait(ENDS_WITHIN)

    def said(self) -> str:
        return f"--- {self.name}\n{self.log.read_text(errors='replace')[-SHOWN:]}"


def worker(
    name: str,
    *,
    threads: int,
    env: Mapping[str, str],
    folder: Path,
    clock: Path | None = None,
    prefix: Sequence[str] = (),
    project: Path = PROJECT,
) -> Program:
    """A worker; `clock` is a file that moves its clock (`clocked.py`), `prefix` a command that runs it."""
    command = ["tests.chaos.clocked", str(clock)] if clock else []
    command += ["celery", "-A", "config", "worker", f"--hostname={name}@chaos", "--pool=threads"]
    command += [f"--concurrency={threads}", "--loglevel=warning", "--without-gossip", "--without-mingle"]
    return Program(name, command, env=env, log=folder / f"{name}.log", prefix=prefix, project=project)


def beat(name: str, *, env: Mapping[str, str], folder: Path, project: Path = PROJECT) -> Program:
    command = ["celery", "-A", "config", "beat", "--loglevel=warning"]
    return Program(name, command, env=env, log=folder / f"{name}.log", project=project)


def web(name: str, *, port: int, env: Mapping[str, str], folder: Path, project: Path = PROJECT) -> Program:
    command = ["daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(port), "config.asgi:application"]
    return Program(name, command, env=env, log=folder / f"{name}.log", project=project)
