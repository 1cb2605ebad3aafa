"""Whole runs with a Redis behind TLS and a password, and with Valkey where it is installed."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis

from activity import counters
from config.embedded.process import until
from config.embedded.redis_server import _program
from tests.chaos import programs
from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab
from tests.chaos.operator import Operator
from tests.config.redis.test_address import _listens, _serve_tls, certificate

PASSWORD = "of-these-tests-alone"


@contextmanager
def server(program: Path, folder: Path) -> Iterator[int]:
    """Run one with a password; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    options += ["--requirepass", PASSWORD, "--maxmemory-policy", "noeviction"]
    with subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL) as process:
        try:
            assert until(lambda: _listens(port), seconds=30), "The server does not start."
            yield port
        finally:
            process.terminate()


@contextmanager
def behind_tls(port: int, folder: Path) -> Iterator[dict[str, str]]:
    """Put TLS in front of a server, as not every redis-server has it; yield the settings to reach it."""
    authority = certificate(folder, "authority", hosts=())
    shown = certificate(folder, "redis", hosts=("127.0.0.1",), signer=authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve_tls, args=(listener, context, port), daemon=True).start()
        try:
            secure = int(listener.getsockname()[1])
            yield {
                "REDIS_URL": f"rediss://:{PASSWORD}@127.0.0.1:{secure}/0",
                "REDIS_CA_FILE": str(authority.certificate),
            }
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def valkey() -> Path:
    """Return Valkey's program; without one the test is skipped."""
    if found := shutil.which("valkey-server"):
        return Path(found)
    pytest.skip("There is no valkey-server here.")


def test_with_tls_and_a_password(lab: Lab, tmp_path: Path) -> None:
    with server(_program(), tmp_path) as port, behind_tls(port, tmp_path) as settings:
        send_whole_runs(lab, settings)


def test_with_valkey(lab: Lab, tmp_path: Path) -> None:
    with server(valkey(), tmp_path) as port:
        send_whole_runs(lab, {"REDIS_URL": f"redis://:{PASSWORD}@127.0.0.1:{port}/0"})


def counted_as_sent(settings: dict[str, str]) -> int:
    trusted = {"ssl_ca_certs": settings["REDIS_CA_FILE"]} if "REDIS_CA_FILE" in settings else {}
    with Redis.from_url(settings["REDIS_URL"], **trusted) as redis:
        counted = {field: int(value) for field, value in redis.hgetall(counters.KEY).items()}
    return sum(value for field, value in counted.items() if b'["outcome", "sent"]' in field)


def send_whole_runs(lab: Lab, settings: dict[str, str]) -> None:
    """Fire runs and a reminder: everything arrives once."""
    lab.kill_workers()
    lab.kill_beats()
    env = lab.env | settings
    worker = programs.worker("elsewhere", threads=16, env=env, folder=lab.servers.home)
    beat = programs.beat("beat-elsewhere", env=env, folder=lab.servers.home)
    person = Operator(env)
    try:
        for program in (worker, beat):
            lab.adopt(program)
        senders = [lab.add_account(limits={"per_minute": 1200}, idempotent=False) for _ in range(3)]
        runs = [person.fire(sender.id, targets=30, parts=2) for sender in senders]
        late = lab.add_account()
        [reminder] = person.schedule(late.id, targets=2, after=[3.0])
        for sender, run in zip(senders, runs, strict=True):
            assert lab.settled(run).status == "success"
            targets = lab.operator.targets(run)
            assert sender.seen.arrivals() == dict.fromkeys(part_keys(targets, parts=2), 1)
        lab.until(lambda: len(late.seen.delivered()) == 2, f"reminder {reminder} fires")
        lab.until(lambda: counted_as_sent(settings) == 3 * 30 * 2 + 2, "the metrics count each of them")
    finally:
        person.leave()
        for program in (worker, beat):
            program.kill()
        lab.want_beats(1)
