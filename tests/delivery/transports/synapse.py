"""A real Matrix homeserver: PyPI's matrix-synapse, in a virtual environment of its own under `var/`.

It is installed once (about a minute), from `requirements-synapse.txt`, and kept for the next time.
"""

import fcntl
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.config.programs import PROJECT

REQUIREMENTS = PROJECT / "requirements-synapse.txt"
HOME = PROJECT / "var" / "synapse"
DOMAIN = "paceline.test"
ADMIN, ADMIN_PASSWORD = "admin", "an admin's password"
SHARED_SECRET = "lets the tests make users"
NO_LIMIT = {"per_second": 10_000, "burst_count": 10_000}


def installed() -> Path:
    """The Python that has Synapse; whoever comes first installs it, and others wait."""
    HOME.mkdir(parents=True, exist_ok=True)
    environment, mark = HOME / "venv", HOME / "installed"
    # What it was made for: another list, another Python or another place make it anew.
    wanted = f"{environment} {sys.version} {hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}"
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            shutil.rmtree(environment, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(environment))
            pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes")
            _run(str(environment / "bin" / "python"), *pip, "--requirement", str(REQUIREMENTS))
            mark.write_text(wanted)
    return environment / "bin" / "python"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Synapse:
    """One homeserver on a port of its own. Its limits are those of `config`; a user can have others."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._python = installed()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        config = folder / "homeserver.yaml"
        config.write_text(json.dumps(_config(folder, port)))  # JSON is YAML
        self._command = [str(self._python), "-m", "synapse.app.homeserver", "--config-path", str(config)]
        _run(*self._command, "--generate-keys")

    def start(self) -> None:
        with (self._folder / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._folder, env={**os.environ, "TZ": "UTC"}
            )
        for _ in range(600):
            if self._healthy():
                return
            assert self._process.poll() is None, (self._folder / "output.log").read_text()
            time.sleep(0.1)
        raise AssertionError("Synapse does not start: " + (self._folder / "output.log").read_text())

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def make_user(self, name: str, password: str, *, admin: bool = False) -> None:
        path = "/_synapse/admin/v1/register"
        nonce = self.ask("GET", path)["nonce"]
        words = "\0".join([nonce, name, password, "admin" if admin else "notadmin"])
        mac = hmac.new(SHARED_SECRET.encode(), words.encode(), hashlib.sha1).hexdigest()
        told = {"nonce": nonce, "username": name, "password": password, "admin": admin, "mac": mac}
        self.ask("POST", path, told)

    def log_in(self, name: str, password: str) -> str:
        user = {"type": "m.id.user", "user": name}
        told = {"type": "m.login.password", "identifier": user, "password": password}
        return str(self.ask("POST", "/_matrix/client/v3/login", told)["access_token"])

    def limit(self, user_id: str, *, per_second: int, burst: int) -> None:
        """Set how much one user may send; 0 and 0 is no limit."""
        told = {"messages_per_second": per_second, "burst_count": burst}
        self.command(f"v1/users/{quote(user_id)}/override_ratelimit", told)

    def deactivate(self, user_id: str) -> None:
        self.command(f"v1/deactivate/{quote(user_id)}", {"erase": False})

    def command(self, path: str, told: object) -> None:
        self.ask("POST", f"/_synapse/admin/{path}", told, token=self.admin_token)

    def ask(self, method: str, path: str, told: object = None, *, token: str = "") -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if told is None else json.dumps(told).encode(),
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _end(self, by: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait(timeout=60)

    def make_admin(self) -> None:
        self.make_user(ADMIN, ADMIN_PASSWORD, admin=True)
        self.admin_token = self.log_in(ADMIN, ADMIN_PASSWORD)


@contextmanager
def running(folder: Path, port: int) -> Iterator[Synapse]:
    synapse = Synapse(folder, port)
    synapse.start()
    try:
        synapse.make_admin()
        yield synapse
    finally:
        synapse.stop()


def _config(folder: Path, port: int) -> dict[str, Any]:
    listener = {
        "port": port,
        "bind_addresses": ["127.0.0.1"],
        "type": "http",
        "resources": [{"names": ["client", "media", "health"], "compress": False}],
    }
    login = {"address": NO_LIMIT, "account": NO_LIMIT, "failed_attempts": NO_LIMIT}
    return {
        "server_name": DOMAIN,
        "pid_file": str(folder / "pid"),
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "registration_shared_secret": SHARED_SECRET,
        "report_stats": False,
        "trusted_key_servers": [],
        "suppress_key_server_warning": True,
        "federation_domain_whitelist": [],
        "bcrypt_rounds": 4,
        "max_upload_size": "5M",
        # As on real homeservers a user who sends too fast is told to wait.
        "rc_message": {"per_second": 5, "burst_count": 3},
        "rc_login": login,
        "rc_registration": NO_LIMIT,
        "rc_joins": {"local": NO_LIMIT, "remote": NO_LIMIT},
        "rc_room_creation": NO_LIMIT,
        "rc_invites": {"per_room": NO_LIMIT, "per_user": NO_LIMIT, "per_issuer": NO_LIMIT},
    }
