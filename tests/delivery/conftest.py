"""One real sandbox for all tests of the engine; each test uses accounts of its own."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings
from redis import Redis

from sandbox.process import SandboxProcess
from tests.delivery.stage import Stage
from tests.delivery.transports.harness import port_without_server
from tests.delivery.transports.synapse import Synapse, running


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("gateway") / "log.jsonl") as process:
        yield process


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    with port_without_server() as port:
        pass
    with running(tmp_path_factory.mktemp("synapse"), port) as synapse:
        yield synapse


@pytest.fixture
def quick(settings: Settings) -> Settings:
    """The engine's seconds as fractions of one, so that nobody waits for a test."""
    settings.PUMP_SECONDS = 5
    settings.LEASE_SECONDS = 4
    settings.HORIZON_SECONDS = 1
    settings.BACKOFF_BASE_SECONDS = 0.02
    settings.RATE_LIMITED_SECONDS = 0.3
    settings.NOT_CONNECTED_SECONDS = 0.1
    settings.SEND_TIMEOUT_SECONDS = 1
    settings.WINDOW_GUARD_SECONDS = 0.2
    settings.RECONNECT_RAMP_MINUTES = 0
    settings.PART_GAP_MIN_MS = 1
    settings.PART_GAP_MAX_MS = 5
    settings.CEILINGS = {}  # which would slow accounts of real transports down to one message per second
    return settings


@pytest.fixture
def stage(transactional_db: None, redis: Redis, gateway: SandboxProcess, quick: Settings) -> Stage:
    """Prepare pumps in the test's own thread: they commit, and close their connections."""
    return Stage(gateway)
