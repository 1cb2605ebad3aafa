"""Starts, watches and signals the processes of the embedded servers."""

import errno
import math
import os
import pwd
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeAlias

Child: TypeAlias = "subprocess.Popen[bytes]"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """Raised when something did not start or stop; the text tells the person at the terminal why and what to do."""


def disk_full(home: Path) -> StartError:
    """Return the error for a disk that cannot take the servers' data."""
    return StartError(
        f"The disk is full: the servers need about 100 MB in {home}. Free some, "
        "or set PACELINE_VAR to a folder on another disk."
    )


@contextmanager
def explaining(home: Path) -> Iterator[None]:
    """Turn errors of the operating system into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise disk_full(home) from error
        raise StartError(
            f"{error.strerror or error}: {error.filename or home}. "
            "Set PACELINE_VAR to a folder that you may write to."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user of the operating system that a server runs as."""

    uid: int
    gid: int


def nobody() -> Account:
    """Return the unprivileged user; its number is the customary one where the system does not list it."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account(uid=65534, gid=65534)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def server_account(home: Path) -> Account | None:
    """Return the user to run PostgreSQL as, since it refuses root and must own its data; None for the current user."""
    if os.geteuid() != 0:
        return None
    for folder in (home / "postgres", home):
        if folder.exists() and (owner := folder.stat()).st_uid != 0:
            return Account(uid=owner.st_uid, gid=owner.st_gid)
    return nobody()


def may_enter(account: Account | None, folder: Path) -> bool:
    """Decide whether `account` may pass through `folder` and all above it, as far as they exist."""
    if account is None:
        return True
    return all(_admits(part.stat(), account) for part in (folder, *folder.parents) if part.is_dir())


def _admits(folder: os.stat_result, account: Account) -> bool:
    if folder.st_uid == account.uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    if folder.st_gid == account.gid:
        return bool(folder.st_mode & stat.S_IXGRP)
    return bool(folder.st_mode & stat.S_IXOTH)


def make_folder(folder: Path, mode: int) -> None:
    """Create `folder` and what is missing above it with `mode`, whatever the umask."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)


def run(
    command: Sequence[str | Path], *, account: Account | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program of a server to its end; return its output and errors in one text."""
    return subprocess.run(  # noqa: S603
        command,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        cwd="/",
        env=_environment(),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=() if account else None,
    )


def spawn(command: Sequence[str | Path], *, log: Path, account: Account | None = None) -> int:
    """Start a server that outlives this program, and return its process id.

    The shell in between makes the server a child of init, so that it never becomes a zombie of ours, and the
    new session keeps a terminal's Ctrl-C from it.
    """
    background = '"$@" </dev/null >&2 & echo $!'
    log.touch(0o600)
    with log.open("ab") as errors:
        shell = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", background, "sh", *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            check=True,
            cwd="/",
            env=_environment(),
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=() if account else None,
        )
    return int(shell.stdout)


def works_in(pid: int, folder: Path) -> bool:
    """Decide whether `pid` is alive with `folder` as its current one: both servers move into their data folder.

    A process id alone proves nothing, since the system gives the ids of dead processes to others.
    """
    if Path("/proc/self/cwd").exists():
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == folder
        except OSError:
            return False
    listed = run(["/bin/ps", "-o", "command=", "-p", str(pid)])
    return str(folder) in listed.stdout


def alive(pid: int) -> bool:
    """Decide whether a process with this id exists, even if it is another user's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def until(condition: Callable[[], bool], *, seconds: float = math.inf, every: float = 0.02) -> bool:
    """Wait for `condition`; return False if it did not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


@contextmanager
def attended(command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> Iterator[Child]:
    """Start a program and, while inside, pass every stop signal on to it instead of stopping."""
    child: Child | None = None
    early: list[int] = []  # signals that came before the program was started

    def forward(number: int, _frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
        elif number != signal.SIGINT or not _in_foreground():  # a terminal's Ctrl-C has reached it already
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in STOP_SIGNALS}
    try:
        child = subprocess.Popen(command, env=env, cwd=cwd)  # noqa: S603
        for number in early:
            child.send_signal(number)
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(returncode: int) -> int:
    """Return the exit code a shell would give for a process: 128 and the signal for one that was killed."""
    return returncode if returncode >= 0 else 128 - returncode


def _in_foreground() -> bool:
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _environment() -> dict[str, str]:
    # English messages, since we search them; none of the project's own environment, since it holds secrets.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
