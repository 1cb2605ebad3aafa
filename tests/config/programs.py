"""Runs a program of the project in an environment of the test's choice, as an installation would."""

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from config.embedded.postgres import Postgres
from config.embedded.redis_server import Redis

PROJECT = Path(__file__).resolve().parents[2]
# Values a developer's .env may hold are named here, so that it cannot change what a test sees.
PRODUCTION = {
    "DEBUG": "false",
    "SECRET_KEY": secrets.token_urlsafe(50),
    "ENCRYPTION_KEY": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "paceline.example",
    "HTTPS": "true",
    "DATABASE_URL": "postgres://paceline:secret@database.example:6432/paceline?sslmode=require",
    "REDIS_URL": "redis://redis.example:6380/2",
}


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run Python on these arguments in production mode, with these values on top."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env={"PATH": "", "LC_ALL": "C.UTF-8", **PRODUCTION, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def short_folder() -> Iterator[Path]:
    """Short enough for a socket, and open to the user that PostgreSQL runs as; pytest's own is neither."""
    folder = Path(tempfile.mkdtemp(prefix="paceline-")).resolve()
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        for server in (Redis(folder), Postgres(folder)):
            server.stop()
        shutil.rmtree(folder)
