"""`make run`: starts the servers, the database, the demo operator, then the processes of the Procfile."""

import fcntl
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from config import development, embedded
from config.embedded.place import PROJECT, make_home
from config.embedded.process import StartError, attended, exit_code, explaining, until
from config.leftovers import MARK, end_leftovers
from config.ports import reserved

PARENT = os.getppid()
STOPPED_BY_SIGNAL = (130, 143)
USUAL_PORTS = {"PORT": 8000, "SANDBOX_PORT": 8081}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The address and processes of one run of Paceline."""

    port: int
    note: Path  # tells a second `make run` about the first

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ready(self) -> bool:
        """Return whether pages open and a worker and beat are up, so that a run that is fired now leaves now."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def main(arguments: Sequence[str]) -> int:
    """Run until stopped; with the argument `demo`, only make the demo operator."""
    try:
        development.load(make_keys=True)
        return _demo() if "demo" in arguments else _run(embedded.var_folder())
    except StartError as error:
        sys.stderr.write(f"paceline: {error}\n")
        return 2
    except subprocess.CalledProcessError as error:
        return exit_code(error.returncode)
    except KeyboardInterrupt:
        return 130


def _demo() -> int:
    with embedded.servers():
        _say(_prepare(os.environ))
    return 0


def _run(var: Path) -> int:
    with _only_one(var) as note:
        if count := end_leftovers(var):
            _say(f"Ended {count} processes that an earlier run had left behind.")
        with reserved(USUAL_PORTS) as ports:
            site = Site(port=ports["PORT"], note=note)
            note.write_text(json.dumps({"address": site.address, "pid": os.getpid()}))
            with embedded.servers():
                environment = _environment(var, ports)
                login = _prepare(environment, "--sandbox", environment["SANDBOX_URL"])
                return _attend(site, environment, login=login)


def _prepare(environment: Mapping[str, str], *demo_options: str) -> str:
    """Bring the database up to date, and return the demo command's words about logging in."""
    _say("Preparing the database.")
    command = [sys.executable, "-m", "config.prepare", *demo_options]
    return subprocess.run(  # noqa: S603
        command, env=environment, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def _attend(site: Site, environment: Mapping[str, str], *, login: str) -> int:
    """Run the processes, report when all are up, and stop them with `make`."""
    command = [sys.executable, "-m", "config.procfile"]
    with attended(command, env=environment, cwd=PROJECT) as child:

        def over() -> bool:
            return child.poll() is not None or _orphaned()

        until(lambda: over() or site.ready(), every=0.3)
        if not over():
            sandbox = f"The sandbox, where its messages arrive: {environment['SANDBOX_URL']}"
            _say(
                f"\nPaceline is ready: {site.address}\n{login}\n{sandbox}\nCtrl-C stops it; the data stays.\n"
            )
        until(over, every=0.3)
        if child.poll() is None:
            site.note.unlink(missing_ok=True)
            child.terminate()
        code = exit_code(child.wait())
    return 0 if code in STOPPED_BY_SIGNAL else code


def _orphaned() -> bool:
    """Return whether the `make` that started this was killed and could not pass the signal on."""
    return "MAKELEVEL" in os.environ and os.getppid() != PARENT


def _environment(var: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """Return the environment of every process."""
    programs = Path(sys.prefix) / "bin"
    return {
        "PUBLIC_URL": f"http://127.0.0.1:{ports['PORT']}",
        "SANDBOX_URL": f"http://127.0.0.1:{ports['SANDBOX_PORT']}",
        "SANDBOX_LOG": str(var / "sandbox.jsonl"),
        "LOG_LEVEL": "WARNING",  # a first look needs no more
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        "SANDBOX_GROUPS": "30",  # as many as the demo command says that each account has
        **{name: value for name, value in os.environ.items() if value},
        **{name: str(port) for name, port in ports.items()},
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
        MARK: str(var),
    }


@contextmanager
def _only_one(var: Path) -> Iterator[Path]:
    """Make sure that this is the only run of `var`, and yield the file that tells others about it."""
    with explaining(var):
        make_home(var)
        lock, note = (var / "run.lock").open("a"), var / "run.json"
    with lock:
        # A run whose `make` was killed a moment ago notices within a second, and takes some more seconds to stop.
        if not until(lambda: _try(lock) or not note.exists(), seconds=2):
            raise StartError(f"Paceline is already running at {_told(note)}: open that, or stop it first.")
        if not until(lambda: _try(lock), seconds=60):
            raise StartError("Another run of this checkout is starting or stopping: try again in a moment.")
        try:
            yield note
        finally:
            note.unlink(missing_ok=True)


def _try(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _told(note: Path) -> str:
    try:
        return str(json.loads(note.read_text())["address"])
    except (OSError, ValueError, KeyError):
        return "an address that is not known yet"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
