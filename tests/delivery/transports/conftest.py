"""One real sandbox for all tests of this folder; each test uses an account of its own."""

from collections.abc import Iterator

import pytest

from sandbox.process import SandboxProcess
from tests.delivery.transports import postfix
from tests.delivery.transports.harness import port_without_server
from tests.delivery.transports.synapse import Synapse, running

collect_ignore = [] if postfix.is_wanted() else ["test_postfix.py"]


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "log.jsonl") as process:
        yield process


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    with port_without_server() as port:
        pass
    with running(tmp_path_factory.mktemp("synapse"), port) as synapse:
        yield synapse
