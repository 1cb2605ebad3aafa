"""Keeps a program from everything but connections that the network rule allows, by Python's audit hooks.

apprise looks up hosts itself, follows what services answer, and reads files that an address may name. A check of the
address beforehand would miss a name that leads elsewhere the second time, a redirect, and a file. So the interpreter
asks here right before each connection, with the address of the machine that it leads to; and before each file.

The standard library alone: this is loaded from its file, without Django and without the rest of Paceline.
"""

import os
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

Require = Callable[[str], None]

# Nothing of this is needed to post to a service.
REFUSED = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.kill",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.putenv",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.spawn",
        "os.symlink",
        "os.system",
        "os.truncate",
        "pty.spawn",
        "shutil.rmtree",
        "socket.bind",
        "socket.sendmsg",
        "socket.sendto",
        "sqlite3.connect",
        "subprocess.Popen",
        "webbrowser.open",
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Beside Python's own modules: the time zones, and the authorities that sign certificates.
READABLE = ("/usr/share/zoneinfo", "/etc/ssl", "/usr/share/ca-certificates", "/etc/pki")
MEMORY, FILES, PROCESSOR_SECONDS = 256 * 2**20, 64, 20


class RefusedError(OSError):
    """Raised in place of what is not allowed. An OSError: libraries expect that connections and files fail."""


def limit(*, seconds: int = PROCESSOR_SECONDS) -> None:
    """Bound memory and processor time, and write no file."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def close(require: Require, *, readable: Sequence[str] = READABLE) -> None:
    """Allow connections only where `require` raises nothing, and reading only of Python's files. For good."""
    folders = tuple(
        os.path.realpath(each)
        for each in (sys.prefix, sys.base_prefix, *sys.path, *readable)
        if each and each != "/"
    )

    def judge(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            require(_machine(arguments))
        elif event == "open":
            _require_readable(arguments, folders)
        elif event in REFUSED:
            raise RefusedError(f"{event} is not allowed here")

    sys.addaudithook(judge)


def _machine(arguments: tuple[Any, ...]) -> str:
    """Return the IP address that a socket is about to be connected to; a name was not looked up where we see it."""
    line, place = arguments
    if line.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(place, tuple):
        raise RefusedError("only connections over the network are allowed here")
    try:
        ip_address(str(place[0]).partition("%")[0])
    except ValueError as error:
        raise RefusedError("a name is looked up before it is connected to") from error
    return str(place[0])


def _require_readable(arguments: tuple[Any, ...], folders: Sequence[str]) -> None:
    path, mode, flags = arguments
    if isinstance(path, int):  # already open
        return
    writes = any(letter in str(mode or "r") for letter in "wax+") or bool((flags or 0) & WRITING)
    real = os.path.realpath(os.fsdecode(path))
    if writes or not any(real == folder or real.startswith(f"{folder}{os.sep}") for folder in folders):
        raise RefusedError("this file is not read here")
