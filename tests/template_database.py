"""A migrated database, from which each test process copies its own within a second.

Migrating takes longer than most rooms of tests. The copy is kept until a migration or a package changes.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier

PREFIX = "migrated_"


def template_database(url: str, *, root: Path, locks: Path, prefix: str = PREFIX) -> str:
    """Return the name of a database with all migrations of `root`; the first process to ask makes it."""
    name, draft = f"{prefix}{_fingerprint(root)}", f"{prefix}draft"
    with _alone(locks / "template.lock"), psycopg.connect(url, autocommit=True) as server:
        found = [row[0] for row in server.execute("SELECT datname FROM pg_database")]
        if name in found:
            return name
        for old in (each for each in found if each.startswith(prefix)):
            server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(old)))
        server.execute(SQL("CREATE DATABASE {}").format(Identifier(draft)))
        _migrate(_address(url, draft), root)
        # Only what is complete gets the name: a killed process leaves no half of it.
        server.execute(SQL("ALTER DATABASE {} RENAME TO {}").format(Identifier(draft), Identifier(name)))
    return name


def _fingerprint(root: Path) -> str:
    """Return what the content of the database depends on: our migrations and the versions of all packages."""
    seen = hashlib.sha256((root / "requirements-dev.txt").read_bytes())
    for path in sorted(root.glob("*/migrations/*.py")):
        seen.update(f"{path.relative_to(root)}\0".encode())
        seen.update(path.read_bytes())
    return seen.hexdigest()[:20]


def _migrate(url: str, root: Path) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    environment = os.environ | {"DATABASE_URL": url, "DEBUG": "true"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The database of the tests cannot be migrated:\n{done.stderr}")


def _address(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
