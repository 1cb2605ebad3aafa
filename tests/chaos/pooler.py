"""A real PgBouncer in transaction mode, where it is installed."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded.postgres import NAME, PORT
from config.embedded.process import server_account, until
from tests.chaos.programs import PROJECT

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
SHIPPED = PROJECT / "deploy" / "pgbouncer.ini"


def expected() -> bool:
    """Return whether its tests must run: where it is installed, or where the environment requires it."""
    return os.environ.get("PGBOUNCER_REQUIRED") == "1" or PROGRAM is not None


@contextmanager
def pgbouncer(postgres: Path, home: Path, *, more: str = "") -> Iterator[str]:
    """Run one in front of the PostgreSQL whose socket is in `postgres`; its address."""
    assert PROGRAM is not None, "PGBOUNCER_REQUIRED is set, but there is no pgbouncer."
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    account, file = server_account(home), home / f"pgbouncer-{port}.ini"
    file.write_text(f"{_rendered(postgres, port)}{more}\n")
    file.chmod(0o644)
    process = subprocess.Popen(
        [PROGRAM, "-q", str(file)],
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=() if account else None,
    )
    try:
        assert until(lambda: _listens(port), seconds=30), "pgbouncer does not start."
        yield f"postgresql://{NAME}@127.0.0.1:{port}/{NAME}"
    finally:
        process.terminate()
        process.wait(30)


def _rendered(postgres: Path, port: int) -> str:
    """Return the shipped file with what an installation changes; its few connections are shared all the time."""
    text = SHIPPED.read_text()
    changes = {
        "paceline = host=127.0.0.1 port=5432 dbname=paceline": (
            f"{NAME} = host={postgres} port={PORT} dbname={NAME} user={NAME}"
        ),
        "listen_port = 6432": f"listen_port = {port}",
        "auth_type = scram-sha-256\nauth_file = /etc/pgbouncer/userlist.txt": "auth_type = any",
        "default_pool_size = 40": "default_pool_size = 3",
    }
    for old, new in changes.items():
        assert old in text, f"{old} is not in the shipped file any more."
        text = text.replace(old, new)
    return text


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
