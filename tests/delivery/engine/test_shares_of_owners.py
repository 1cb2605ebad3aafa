"""One owner's silent mail servers and mailboxes hold up no other owner's."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from accounts.models import Account, User
from accounts.models.account import Channel
from config.shares import SharedThreads
from delivery.inbound import polling
from delivery.outcomes import HeldBack, Sent
from delivery.transports.base import Message, Timeouts
from delivery.transports.email import send
from delivery.transports.email.send import EmailTransport
from delivery.transports.networks.allowed import allowed_networks
from tests.delivery.transports.harness import SECRET
from tests.delivery.transports.mail_server import USER as SENDER
from tests.delivery.transports.mail_server import MailServer
from tests.delivery.transports.mailbox_server import USER, MailboxServer
from tests.factories import AccountFactory
from tests.silent_server import SilentServer

LONG = Timeouts(connect=30, total=60, upload=60)
SHORT = Timeouts(connect=1, total=2, upload=2)
MESSAGE = Message(address="reader@example.com", kind="text", text="Hello", action="email", subject="Hi")


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    with SilentServer() as server:
        yield server


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "_threads", SharedThreads(total=4, each=3, name="smtp"))
    monkeypatch.setattr(send, "_mailbox_threads", SharedThreads(total=3, each=2, name="imap"))


def mailer(port: int, *, owner: int, timeouts: Timeouts, **more: str) -> EmailTransport:
    given = {"host": "127.0.0.1", "port": str(port), "security": "none", "from_address": SENDER, **more}
    return EmailTransport(given, None, timeouts=timeouts, networks=allowed_networks(["all"]), owner=owner)


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as running:
        running.wants_login = False
        yield running


async def test_a_silent_mail_server_of_one_owner_holds_up_no_other(
    silent: SilentServer, server: MailServer
) -> None:
    hanging = mailer(silent.port, owner=1, timeouts=LONG)
    tasks = [asyncio.create_task(hanging.send(MESSAGE, f"key-{number}")) for number in range(20)]
    assert await asyncio.to_thread(silent.wait_for, 3, seconds=30)
    port = server._server.sockets[0].getsockname()[1]
    other = mailer(port, owner=2, timeouts=LONG)
    assert isinstance(await other.send(MESSAGE, "other"), Sent)
    assert not any(task.done() for task in tasks)
    assert silent.held == 3
    silent.let_go()
    await asyncio.gather(*tasks)
    await other.close()


async def test_what_finds_no_thread_in_time_was_not_sent(silent: SilentServer) -> None:
    hanging = mailer(silent.port, owner=1, timeouts=LONG)
    tasks = [asyncio.create_task(hanging.send(MESSAGE, f"key-{number}")) for number in range(3)]
    assert await asyncio.to_thread(silent.wait_for, 3, seconds=30)
    late = await mailer(silent.port, owner=1, timeouts=SHORT).send(MESSAGE, "late")
    assert isinstance(late, HeldBack)
    assert "too many e-mails" in late.reason
    assert silent.held == 3
    silent.let_go()
    await asyncio.gather(*tasks)


@pytest.mark.django_db(transaction=True)
class TestMailboxes:
    """These run in a separate thread, since `poll_all` has its own event loop."""

    @pytest.fixture
    def mailbox(self) -> Iterator[MailboxServer]:
        loop, made = asyncio.new_event_loop(), list[MailboxServer]()

        async def serve() -> None:
            over.append(asyncio.Event())
            async with MailboxServer() as running:
                made.append(running)
                ready.set()
                await over[0].wait()

        ready, over = threading.Event(), list[asyncio.Event]()
        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        assert ready.wait(30)
        yield made[0]
        loop.call_soon_threadsafe(over[0].set)
        thread.join(30)
        loop.close()

    def account(self, owner: User, port: int, **more: object) -> Account:
        given = {"host": "127.0.0.1", "port": "9", "security": "none", "from_address": SENDER}
        given |= {"imap_host": "127.0.0.1", "imap_port": str(port), "user": USER, "password": SECRET}
        return AccountFactory.create(
            owner=owner, channel=Channel.EMAIL, transport="email", credentials=given, **more
        )

    def test_a_silent_mailbox_holds_up_nobody(
        self, owner: User, stranger: User, silent: SilentServer, mailbox: MailboxServer
    ) -> None:
        hanging = [self.account(owner, silent.port) for _ in range(6)]
        other = self.account(stranger, mailbox.port)
        polls = threading.Thread(target=polling.poll_all)
        polls.start()
        try:
            assert silent.wait_for(2, seconds=60)
            assert _until(lambda: Account.objects.get(pk=other.pk).poll_since != "")
            assert silent.held == 2  # of six, since an owner has two threads here
        finally:
            silent.let_go()
            polls.join(60)
        assert (
            not Account.objects.filter(pk__in=[each.pk for each in hanging]).exclude(poll_since="").exists()
        )

    def test_of_many_accounts_of_one_owner_a_few_are_asked(self, owner: User, stranger: User) -> None:
        mine = [Account(pk=number, owner=owner) for number in range(30)]
        chosen = polling._fair([*mine, Account(pk=99, owner=stranger)])
        assert len(chosen) == polling.MOST_OF_ONE_OWNER + 1
        assert chosen[-1].owner == stranger


def _until(holds: Callable[[], bool]) -> bool:
    waited = threading.Event()
    return any(holds() or waited.wait(0.05) for _ in range(1200))
