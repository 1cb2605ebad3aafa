"""The address of an installation and the key for it: from the environment, or from a file that only you can read."""

import ipaddress
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from client.errors import ClientError

OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The address of an installation, and the key with which to ask it."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Login(url={self.url!r})"  # a key must not end up in a log


def place() -> Path:
    """Return where the login is kept."""
    if named := os.environ.get("PACELINE_LOGIN_FILE"):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "paceline" / "login.json"


def find() -> Login:
    """Return the login of the environment, else of the file; raise ClientError where there is none."""
    url, key = os.environ.get("PACELINE_URL", ""), os.environ.get("PACELINE_KEY", "")
    if bool(url) != bool(key):  # a key must not go to the address of another login
        there, missing = ("PACELINE_URL", "PACELINE_KEY") if url else ("PACELINE_KEY", "PACELINE_URL")
        raise ClientError(f"{there} is set and {missing} is not. Set both, or none of them.")
    return Login(url=address_of(url), key=key) if url else _read(place())


def save(login: Login) -> Path:
    """Write the login for you alone, and return its file."""
    file = place()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(asdict(login), out)
    new.replace(file)
    return file


def forget() -> bool:
    """Delete the file; return whether there was one."""
    if not place().exists():
        return False
    place().unlink()
    return True


def address_of(typed: str) -> str:
    """Return the address as it is kept: without /api/v1 and without a slash at its end; raise ClientError."""
    url = typed.strip() if "://" in typed else f"https://{typed.strip()}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ClientError(
            f"“{typed}” is not the address of an installation, such as https://paceline.example."
        )
    if parts.username or parts.password:
        raise ClientError(
            "The address must have no user name and no password. The key is asked for separately."
        )
    if parts.scheme == "http" and not _is_here(parts.hostname) and not os.environ.get("PACELINE_PLAIN_HTTP"):
        raise ClientError(
            f"{parts.hostname} is asked without encryption, so others could read the key. Use https, or set "
            "PACELINE_PLAIN_HTTP=1 if nobody else is on the way."
        )
    path = parts.path.rstrip("/").removesuffix("/api/v1").rstrip("/")
    return parts._replace(path=path).geturl()


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(file: Path) -> Login:
    try:
        with file.open() as opened:
            mode = os.fstat(opened.fileno()).st_mode
            said = json.load(opened)
        found = Login(url=address_of(said["url"]), key=str(said["key"]))
    except FileNotFoundError:
        raise ClientError("You are not logged in. Run: paceline login") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClientError(f"{file} cannot be read ({error}). Run: paceline login") from error
    if os.name == "posix" and mode & OPEN_TO_OTHERS:
        raise ClientError(f"Others can read the key in {file}. Run: chmod 600 {file}")
    return found
