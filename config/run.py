"""`make run`: the servers, the database, the demo operator, then the processes of the Procfile."""

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
from config.embedded.place import PROJECT, is_free, make_home
from config.embedded.process import StartError, attended, exit_code, explaining, until
from config.leftovers import MARK, end_leftovers

PARENT = os.getppid()
STOPPED_BY_SIGNAL = (130, 143)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one run of Paceline is found while it is up."""

    port: int
    note: Path  # tells a second `make run` of the first

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ready(self) -> bool:
        """Whether pages open and a worker and beat are up: what is fired now leaves now."""
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
        web = _port("PORT", 8000)
        sandbox = _port("SANDBOX_PORT", 8081, taken=web)
        site = Site(port=web, note=note)
        note.write_text(json.dumps({"address": site.address, "pid": os.getpid()}))
        with embedded.servers():
            environment = _environment(var, web=web, sandbox=sandbox)
            return _attend(site, environment, login=_prepare(environment))


def _prepare(environment: Mapping[str, str]) -> str:
    """Bring the database up to date, and return what the demo command says about logging in."""
    _say("Preparing the database.")
    _manage(environment, "migrate", "--no-input", "--verbosity=0")
    return _manage(environment, "demo").strip()


def _manage(environment: Mapping[str, str], *arguments: str) -> str:
    command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
    return subprocess.run(  # noqa: S603
        command, env=environment, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def _attend(site: Site, environment: Mapping[str, str], *, login: str) -> int:
    """Run the processes, tell when all are up, and stop them with `make`."""
    command = [sys.executable, "-m", "config.procfile"]
    with attended(command, env=environment, cwd=PROJECT) as child:

        def over() -> bool:
            return child.poll() is not None or _orphaned()

        until(lambda: over() or site.ready(), every=0.3)
        if not over():
            _say(f"\nPaceline is ready: {site.address}\n{login}\nCtrl-C stops it; the data stays.\n")
        until(over, every=0.3)
        if child.poll() is None:
            site.note.unlink(missing_ok=True)
            child.terminate()
        code = exit_code(child.wait())
    return 0 if code in STOPPED_BY_SIGNAL else code


def _orphaned() -> bool:
    """Whether the `make` that started this was killed, and could not pass that on."""
    return "MAKELEVEL" in os.environ and os.getppid() != PARENT


def _environment(var: Path, *, web: int, sandbox: int) -> dict[str, str]:
    """The environment of every process."""
    programs = Path(sys.prefix) / "bin"
    return {
        "PUBLIC_URL": f"http://127.0.0.1:{web}",
        "SANDBOX_URL": f"http://127.0.0.1:{sandbox}",
        "SANDBOX_LOG": str(var / "sandbox.jsonl"),
        "SANDBOX_GROUPS": "30",  # as many as the demo command says that each account has
        **os.environ,
        "PORT": str(web),
        "SANDBOX_PORT": str(sandbox),
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
        MARK: str(var),
    }


def _port(name: str, usual: int, taken: int = 0) -> int:
    """The port that `name` asks for, or the usual one, or the next that is free."""
    given = os.environ.get(name)
    if not given:
        return next(port for port in range(usual, 65536) if port != taken and is_free(port))
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise StartError(f"{name} is {given!r}: it must be a number from 1 to 65535.")
    if not is_free(int(given)):
        raise StartError(f"Port {given} is in use: stop what uses it, or choose another {name}, or none.")
    return int(given)


@contextmanager
def _only_one(var: Path) -> Iterator[Path]:
    """Be the one run of `var`, and yield the file that tells others of it."""
    with explaining(var):
        make_home(var)
        lock, note = (var / "run.lock").open("a"), var / "run.json"
    with lock:
        # One whose `make` was killed a moment ago notices within the second, and takes some more to stop.
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
        return "an address that it has not told yet"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
