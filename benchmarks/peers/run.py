"""Runs pg-boss, BullMQ and the floor on the servers and the receiver of a benchmark, one after the other."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from django.db import connection

from benchmarks.rig import Rig

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
INSTALL_WITHIN = 180.0  # seconds
READY_WITHIN = 30.0
TABLE = """
DROP TABLE IF EXISTS peer_target;
CREATE TABLE peer_target (id bigint PRIMARY KEY, account text, address text, body text,
                          status text DEFAULT 'pending', sent_at timestamptz);
INSERT INTO peer_target SELECT n, 'p' || n %% 8, n || '@g.us', 'Hello' FROM generate_series(1, %s) n
"""


class Peers:
    """The peers on one rig; each measurement starts with a new table and ends once all of its rows are sent."""

    def __init__(self, bench: Rig, sink: str, targets: int) -> None:
        self.bench, self.sink, self.targets = bench, sink, targets

    def measured(self) -> dict[str, float]:
        """Return the targets per second of each peer that can be run here."""
        rates = {"floor_per_second": self._rate(self._floor)}
        if installed := node_modules():
            for name in ("pgboss", "bullmq"):
                rates[f"{name}_per_second"] = self._rate(partial(self._node, installed, name))
        return rates

    def _rate(self, run: Callable[[], float]) -> float:
        with connection.cursor() as cursor:
            cursor.execute(TABLE, [self.targets])
            start = run()
            cursor.execute("SELECT EXTRACT(EPOCH FROM max(sent_at)) FROM peer_target")
            return self.targets / (float(cursor.fetchone()[0]) - start)

    def _floor(self) -> float:
        """Run the floor to its end; return when it started."""
        command = [sys.executable, "-m", "benchmarks.peers.floor"]
        environment = {**os.environ, "SINK": self.sink, "PEER_DSN": self.bench.environment["DATABASE_URL"]}
        with subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as floor:
            assert floor.stdout is not None
            floor.stdout.readline()
            start = time.time()
            floor.communicate(b"\n")
        return start

    def _node(self, installed: Path, name: str) -> float:
        """Run a worker and fill its queue, until all is sent; return when filling started."""
        environment = {
            **os.environ,
            "PEER": name,
            "PEERS": str(installed),
            "SINK": self.sink,
            "PEER_DATABASE": json.dumps(_database()),
            "PEER_REDIS": json.dumps(_redis(self.bench.environment["REDIS_URL"])),
        }
        program = [str(_nodejs(installed)), str(HERE / f"{name}.mjs")]
        with subprocess.Popen([*program, "worker"], env=environment, stdout=subprocess.PIPE) as worker:
            try:
                assert worker.stdout is not None
                worker.stdout.readline()
                time.sleep(1)  # until it is idle
                start = time.time()
                subprocess.run([*program, "enqueue"], env=environment, check=True)
                while _unsent():
                    time.sleep(0.1)
            finally:
                worker.kill()
        return start


def node_modules() -> Path | None:
    """Return the folder with the packages of Node.js, installed if they are missing; None where that cannot be done."""
    folder = PROJECT / "var" / "bench" / "peers"
    if (folder / "node_modules" / "pg-boss").exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        print("pg-boss and BullMQ are left out: npm is not installed.")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", folder)
    try:
        subprocess.run(
            [npm, "install", "--silent", "--no-package-lock"],
            cwd=folder,
            check=True,
            timeout=INSTALL_WITHIN,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        print("pg-boss and BullMQ are left out: their packages cannot be installed here.")
        return None
    return folder


def _nodejs(installed: Path) -> str | Path:
    """Return Node.js: the one among the packages is new enough for pg-boss, the system's may not be."""
    own = installed / "node_modules" / "node" / "bin" / "node"
    return own if own.exists() else "node"


def _database() -> Mapping[str, object]:
    found = connection.settings_dict
    return {
        "host": found["HOST"],
        "port": int(found["PORT"] or 5432),
        "user": found["USER"],
        "password": found["PASSWORD"],
        "database": found["NAME"],
    }


def _redis(url: str) -> Mapping[str, object]:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return {"path": parts.path, "db": int(parse_qs(parts.query).get("db", ["0"])[0])}
    return {
        "host": parts.hostname,
        "port": parts.port or 6379,
        "db": int(parts.path.strip("/") or 0),
        "password": parts.password,
    }


def _unsent() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM peer_target WHERE status <> 'sent' LIMIT 1")
        return cursor.fetchone() is not None
