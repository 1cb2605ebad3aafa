"""Names whose server never answers: nobody but their owner waits for them, and nobody for long."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from yarl import URL

from config.shares import SharedThreads
from delivery.outcomes import Unreachable
from delivery.transports.base import AccountState, Timeouts
from delivery.transports.email.send import EmailTransport
from delivery.transports.http.exchange import Answer, Request, Unanswered, exchange, open_session
from delivery.transports.networks import names
from delivery.transports.networks.allowed import ANYWHERE
from delivery.transports.networks.names import on_behalf_of

LOST = "lost.example"


class LostDomain:
    """The system's lookup, which hangs for every name of one domain until the test is over."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.over = threading.Event()
        self._usual = socket.getaddrinfo

    def look_up(self, host: str, *arguments: object, **more: object) -> object:
        if not host.endswith(LOST):
            return self._usual(host, *arguments, **more)  # type: ignore[arg-type]  # whatever was given
        self.asked.release()
        self.over.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    def hangs_for(self, count: int) -> bool:
        return all(self.asked.acquire(timeout=30) for _ in range(count))


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[LostDomain]:
    domain = LostDomain()
    monkeypatch.setattr(names, "_threads", SharedThreads(total=3, each=2, name="names"))
    monkeypatch.setattr(socket, "getaddrinfo", domain.look_up)
    yield domain
    domain.over.set()


async def asked(url: str, *, owner: int, connect: float = 30) -> Answer | Unanswered:
    async with open_session() as session:
        with on_behalf_of(owner):
            return await exchange(
                session, Request(method="GET", url=URL(url)), connect=connect, total=2 * connect
            )


async def test_names_of_one_owner_that_are_lost_hold_up_no_other(lost: LostDomain) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    hanging = [asyncio.create_task(asked(f"http://{n}.{LOST}/", owner=1)) for n in range(10)]
    assert await asyncio.to_thread(lost.hangs_for, 2)
    found = await asked(f"http://localhost:{port}/", owner=2)
    assert isinstance(found, Unreachable)
    assert found.reason == f"connection refused, localhost:{port}"
    assert not any(task.done() for task in hanging)
    assert not lost.asked.acquire(blocking=False)  # two places for one owner, of three
    lost.over.set()
    answers = await asyncio.gather(*hanging)
    assert all(isinstance(answer, Unreachable) for answer in answers)


def test_a_page_that_gave_up_waits_no_longer_for_the_lookup(lost: LostDomain) -> None:
    with asyncio.Runner() as runner:
        found = runner.run(asked(f"http://gateway.{LOST}/", owner=1, connect=0.2))
    assert isinstance(found, Unreachable)
    assert not lost.over.is_set()


async def test_a_mail_server_whose_name_is_lost_is_not_waited_for(lost: LostDomain) -> None:
    given = {"host": f"mail.{LOST}", "port": "25", "security": "none", "from_address": "news@school.example"}
    short = Timeouts(connect=0.2, total=30, upload=30)
    mailer = EmailTransport(given, None, timeouts=short, networks=ANYWHERE, owner=1)
    assert await mailer.status() is AccountState.UNREACHABLE
    assert mailer.why.startswith("no answer within 0.2 s")
    assert not lost.over.is_set()
    await mailer.close()


def test_the_lookups_of_a_mail_server_count_for_its_owner(lost: LostDomain) -> None:
    for _ in range(3):
        with on_behalf_of(1), pytest.raises(OSError, match=r"^$"):
            names.look_up(f"mail.{LOST}", 25, seconds=0.05)
    assert lost.hangs_for(2)
    assert not lost.asked.acquire(blocking=False)
    with on_behalf_of(2):
        assert names.look_up("localhost", 25, seconds=30)
