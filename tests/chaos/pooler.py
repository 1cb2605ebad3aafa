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

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
# Few, so that sessions are shared all the time.
SETTINGS = """
[databases]
{name} = host={postgres} port={postgres_port} dbname={name} user={name} pool_size=3
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
{more}
"""


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
    file.write_text(SETTINGS.format(name=NAME, postgres=postgres, postgres_port=PORT, port=port, more=more))
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


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
