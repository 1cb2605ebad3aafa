"""Decides where the embedded servers keep their data, and how they are reached."""

import hashlib
import json
import os
import secrets
import socket
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from config.embedded.process import StartError, make_folder, may_enter, server_account

PROJECT = Path(__file__).resolve().parents[2]
SOCKET_PATH_BYTES = 103 if sys.platform == "darwin" else 107
# For root alone: PostgreSQL then runs as another user, who cannot enter a checkout in a private home.
FALLBACK = Path("/var/lib/paceline")


def var_folder() -> Path:
    """Return the folder that holds everything this checkout writes while it runs."""
    return Path(os.environ.get("PACELINE_VAR") or PROJECT / "var").expanduser().resolve()


def home_of(var: Path) -> Path:
    """Return the folder of the servers of `var`: inside it, unless PostgreSQL's user cannot enter it."""
    if may_enter(server_account(var), var):
        return var
    return FALLBACK / hashlib.sha256(os.fsencode(var)).hexdigest()[:8]


def make_home(home: Path) -> None:
    """Create the folder of the servers, private except that root's must let PostgreSQL's user through."""
    make_folder(home, 0o711 if os.geteuid() == 0 else 0o700)


def fits_socket(path: Path) -> bool:
    """Decide whether a unix socket can have this path."""
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """The ports and the password to reach the servers over TCP, for folders too deep for a socket.

    Any user of the machine can connect to a loopback port, hence the password.
    """

    postgres_port: int
    redis_port: int
    password: str


def loopback(home: Path) -> Loopback:
    """Return the ports and the password of `home`; the first call chooses and stores them."""
    file = home / "servers.json"
    try:
        return Loopback(**json.loads(file.read_text()))
    except FileNotFoundError:
        first = Loopback(
            postgres_port=_free_port(), redis_port=_free_port(), password=secrets.token_urlsafe(24)
        )
        _write(file, first, exclusively=True)
        return loopback(home)
    except (ValueError, TypeError) as error:
        raise StartError(f"{file} is damaged; move it away and start again.") from error


def move_to_free_ports(home: Path, *, postgres: bool = False, redis: bool = False) -> None:
    """Give the named server another port if another program has taken its own."""
    current = loopback(home)
    if postgres and not is_free(current.postgres_port):
        current = replace(current, postgres_port=_free_port())
    if redis and not is_free(current.redis_port):
        current = replace(current, redis_port=_free_port())
    _write(home / "servers.json", current, exclusively=False)


def _write(file: Path, content: Loopback, *, exclusively: bool) -> None:
    """Write in one step, so that readers see the whole file, and of two first writers one wins."""
    make_home(file.parent)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    draft.touch(0o600)
    draft.write_text(json.dumps(asdict(content)))
    if not exclusively:
        draft.replace(file)
        return
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def is_free(port: int) -> bool:
    """Decide whether a server could listen on this loopback port."""
    with socket.socket() as probe:
        # As the servers do: a port with only closing connections counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
