"""One real sandbox for all tests of this folder; each test uses an account of its own."""

from collections.abc import Iterator

import pytest

from sandbox.process import SandboxProcess
from tests.delivery.transports import postfix

collect_ignore = [] if postfix.is_wanted() else ["test_postfix.py"]


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "log.jsonl") as process:
        yield process
