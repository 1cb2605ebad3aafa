"""The receivers of a benchmark's messages: nginx or the sandbox.

nginx costs almost nothing: it answers as the sandbox does, accepts every request, and its access log is the record.
The sandbox works for every message, on the same cores, so the figure is lower, down to half. Therefore a figure names
its receiver, and is compared only with figures of the same one.
"""

import os
import shutil
import socket
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.process import SandboxProcess
from sandbox.witness import deliveries, times

NGINX, SANDBOX = RECEIVERS = ("nginx", "sandbox")
CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    log_format witness '$msec $http_idempotency_key $uri';
    access_log {folder}/received.log witness buffer=64k flush=100ms;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 10000000;
    keepalive_timeout 300s;
    default_type application/json;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location /api/ {{ return 201 '{{"id": "$request_id"}}'; }}
    }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """The receiver, and what arrived there: every key that was received, with how often."""

    name: str
    url: str
    pid: int
    log: Path

    def received(self) -> Counter[str]:
        if self.name == SANDBOX:
            return Counter(str(line.get("key", "")) for line in deliveries(self.log))
        time.sleep(0.3)  # until it has flushed its log
        return Counter(key for _, key, _ in self._lines())

    def times(self) -> dict[str, list[int]]:
        """Return when each account's messages were received, in milliseconds."""
        if self.name == SANDBOX:
            return times(self.log)
        time.sleep(0.3)
        by_account: defaultdict[str, list[int]] = defaultdict(list)
        for at, _, path in self._lines():
            if path.endswith("/messages"):
                by_account[path.split("/")[2]].append(round(float(at) * 1000))
        return dict(by_account)

    def _lines(self) -> Iterator[list[str]]:
        with self.log.open() as log:
            yield from (line.split() for line in log)


def nginx_program() -> str | None:
    """Return the path of nginx, also when it is outside the PATH of ordinary users, or None."""
    return shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))


@contextmanager
def sink(name: str, folder: Path) -> Iterator[Sink]:
    """Run the receiver of this name, one of RECEIVERS."""
    with _nginx(folder) if name == NGINX else _sandbox(folder) as receiver:
        yield receiver


@contextmanager
def _sandbox(folder: Path) -> Iterator[Sink]:
    with SandboxProcess(folder / "received.jsonl") as sandbox:
        yield Sink(name=SANDBOX, url=sandbox.url, pid=sandbox.pid, log=sandbox.log)


@contextmanager
def _nginx(folder: Path) -> Iterator[Sink]:
    program = nginx_program()
    if program is None:
        raise SystemExit("nginx is not installed: install it, or choose --receiver sandbox.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.chmod(0o755)  # as root, nginx works as another user
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, port=port))
    process = subprocess.Popen([program, "-c", folder / "nginx.conf", "-e", folder / "error.log"])
    try:
        _wait_for(port)
        yield Sink(name=NGINX, url=f"http://127.0.0.1:{port}", pid=process.pid, log=folder / "received.log")
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
