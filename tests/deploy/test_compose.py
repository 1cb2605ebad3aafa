"""compose.yaml: what it says hangs together, and its commands serve pages and send, run as processes."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from redis import ConnectionError as RedisConnectionError
from redis import Redis

from config.embedded.process import until
from config.embedded.redis_server import _program
from tests.chaos.servers import Servers
from tests.config.programs import PROJECT
from tests.deploy.compose import compose, dockerfile, health_command, image_command

VALUES = {
    "POSTGRES_PASSWORD": "letters1",
    "SECRET_KEY": secrets.token_urlsafe(50),
    "ENCRYPTION_KEY": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "paceline.example",
}
OURS = ("migrate", "web", "worker", "beat")
READY_WITHIN = 120.0  # seconds
SECONDS = {"s": 1, "m": 60}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = compose(VALUES)["services"]
    return found


def test_it_asks_for_the_password_of_the_database() -> None:
    with pytest.raises(KeyError, match="POSTGRES_PASSWORD: set it"):
        compose({})


def test_all_that_is_named_exists(services: Mapping[str, Any]) -> None:
    volumes = set(compose(VALUES)["volumes"])
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= volumes, name
    assert set(OURS) | {"postgres", "redis"} == set(services)


def test_all_programs_wait_for_the_migrations_and_these_for_the_servers(services: Mapping[str, Any]) -> None:
    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    healthy = {"condition": "service_healthy"}
    assert services["migrate"]["depends_on"] == {"postgres": healthy, "redis": healthy}
    assert services["migrate"]["restart"] == "no"


def test_all_see_the_same_media(services: Mapping[str, Any]) -> None:
    for name in OURS:
        assert services[name]["volumes"] == ["media:/srv/paceline/var/media"]
        assert services[name]["environment"]["MEDIA_ROOT"] == "/srv/paceline/var/media"


def test_nothing_but_the_pages_is_reached_from_outside_and_these_from_this_machine_alone(
    services: Mapping[str, Any],
) -> None:
    assert {name for name, service in services.items() if "ports" in service} == {"web"}
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]


def test_a_worker_has_the_time_to_finish_what_is_on_its_way(services: Mapping[str, Any]) -> None:
    from django.conf import settings  # noqa: PLC0415 - the other tests need no Django

    grace = services["worker"]["stop_grace_period"]
    assert int(grace[:-1]) * SECONDS[grace[-1]] > settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT + 20


def test_what_the_image_copies_exists() -> None:
    copied = [line.split()[1] for line in dockerfile().splitlines() if line.startswith("COPY")]
    assert copied == ["requirements.txt", "."]
    assert "USER paceline" in dockerfile()


def test_redis_takes_its_options_and_throws_no_keys_away(services: Mapping[str, Any], tmp_path: Path) -> None:
    program, *options = services["redis"]["command"]
    assert program == "redis-server"
    port = free_port()
    command = [str(_program()), *options, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, Redis(port=port) as redis:
        try:
            assert until(lambda: _answers(redis), seconds=30)
            assert redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert redis.config_get("appendonly") == {"appendonly": "yes"}
        finally:
            process.terminate()


def _answers(redis: Redis) -> bool:
    try:
        return bool(redis.ping())
    except (OSError, RedisConnectionError):
        return False


@pytest.mark.django_db
def test_postgresql_knows_its_options(services: Mapping[str, Any]) -> None:
    program, *options = services["postgres"]["command"]
    assert program == "postgres"
    names = [option.partition("=")[0] for option in options if option != "-c"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE name = ANY(%s)", [names])
        assert {name for (name,) in cursor.fetchall()} == set(names)


class Processes:
    """The programs of compose.yaml as processes, on servers of the test's own."""

    def __init__(self, services: Mapping[str, Any], servers: Servers) -> None:
        self.services = services
        self.servers = servers
        self.port = free_port()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.log = servers.home / "compose.log"

    def environment(self, name: str) -> dict[str, str]:
        """Return what the container would see; only addresses and folders are of this machine."""
        given = {key: str(value) for key, value in self.services[name].get("environment", {}).items()}
        assert given["DATABASE_URL"] == "postgresql://paceline:letters1@postgres:5432/paceline"
        assert given["REDIS_URL"] == "redis://redis:6379/0"
        return {
            "PATH": f"{Path(sys.prefix) / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "LC_ALL": "C.UTF-8",
            **VALUES,
            **given,
            "DATABASE_URL": self.servers.postgres.url,
            "REDIS_URL": self.servers.redis.url,
            "MEDIA_ROOT": str(self.servers.home / "media"),
            "PACELINE_VAR": str(self.servers.home),
            "WORKER_THREADS": "8",
        }

    def here(self, command: Sequence[str]) -> list[str]:
        """Return a command with the port of this test."""
        return [word.replace("0.0.0.0", "127.0.0.1").replace("8000", str(self.port)) for word in command]

    def start(self, name: str) -> None:
        command = self.services[name].get("command") or image_command()
        with self.log.open("ab") as log:
            self.running[name] = subprocess.Popen(
                self.here(command), cwd=PROJECT, env=self.environment(name), stdout=log, stderr=log
            )

    def healthy(self) -> bool:
        asked = subprocess.run(
            self.here(health_command()),
            env=self.environment("web"),
            capture_output=True,
            timeout=60,
            check=False,
        )
        return asked.returncode == 0

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(30)


@pytest.fixture
def processes(services: Mapping[str, Any]) -> Iterator[Processes]:
    servers = Servers()
    made = Processes(services, servers)
    try:
        servers.start()
        yield made
    finally:
        made.end()
        servers.remove()


@pytest.mark.xdist_group("compose")
def test_its_commands_become_ready_and_end_when_they_are_asked_to(processes: Processes) -> None:
    processes.start("migrate")
    assert processes.running["migrate"].wait(READY_WITHIN) == 0, processes.log.read_text()
    for name in ("web", "worker", "beat"):
        processes.start(name)
    assert until(processes.healthy, seconds=READY_WITHIN, every=0.5), processes.log.read_text()
    for name in ("worker", "beat", "web"):
        process = processes.running[name]
        process.terminate()
        assert process.wait(60) in {0, -15}, processes.log.read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
