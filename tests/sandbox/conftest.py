"""A gateway in this process, and a client for a sandbox in a process of its own."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox.behaviour import Behaviour
from sandbox.gateway import Gateway, Reply
from sandbox.log import Line, Log, read
from sandbox.process import SandboxProcess

TOKEN = {"Authorization": "Bearer t"}


class Desk:
    """Hands requests to a gateway, with a clock that the test sets."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.at = 1_000_000
        self._open()

    def _open(self) -> None:
        self._file = Log(self.log)
        self.gateway = Gateway(self._file, defaults=Behaviour())

    def restart(self) -> None:
        self._file.close()
        self._open()
        self.gateway.restore()

    def close(self) -> None:
        self._file.close()

    def behave(self, account: str = "a", /, **wishes: Any) -> None:
        self.gateway.account(account).behave(Behaviour(**wishes))

    def send(
        self,
        *,
        account: str = "a",
        to: str = "g",
        text: str = "hi",
        key: str = "",
        token: str = "t",
        **more: Any,
    ) -> Reply:
        return self.post(json.dumps({"to": to, "text": text, **more}).encode(), account, key, token)

    def post(self, body: bytes, account: str = "a", key: str = "", token: str = "t") -> Reply:
        return self.gateway.message(
            at=self.at, name=account, authorization=f"Bearer {token}", key=key, body=body
        )

    @property
    def lines(self) -> list[Line]:
        return list(read(self.log))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "log.jsonl")
    yield desk
    desk.close()


@pytest.fixture(scope="session")
def shared_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "log.jsonl") as process:
        yield process


@pytest.fixture
def process(shared_process: SandboxProcess) -> SandboxProcess:
    """A sandbox that knows nothing, with an empty log."""
    shared_process.reset()
    os.truncate(shared_process.log, 0)
    return shared_process


@pytest.fixture
async def client(process: SandboxProcess) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(process.url, headers=TOKEN) as session:
        yield session
