"""E-mail runs through the engine to a real mail server that greylists, throttles, fails and restarts."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from pytest_django import Settings

from accounts.models import Account
from activity.models import Attempt
from delivery.engine import pump
from delivery.models import Run
from delivery.states import RunStatus
from tests.delivery.stage import Stage, add_up, counted, sentence_of
from tests.factories import AccountFactory, LimitFactory, RecipientFactory

PATIENCE = 60.0  # seconds; the machine may be slow
OK = "250 OK"
DONE = "Ready. Nothing to send."
SAYS = {
    "rate_limited": r"The mail server asked us to slow down at",
    "server_errors": r"The mail server answers with errors since",
    "unreachable": r"No answer from the mail server since",
}


class MoodyServer:
    """A mail server on a port of its own that says what a test wants, by step and recipient."""

    def __init__(self) -> None:
        self.took: list[str] = []
        self.asked: list[str] = []
        self.says_to_sender: Callable[[], str] = lambda: OK
        self.says_to_recipient: Callable[[str], str] = lambda _: OK
        self.says_to_data: Callable[[], str] = lambda: OK
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.start()

    def start(self) -> None:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        envelope.mail_from = address
        return self.says_to_sender()

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        self.asked.append(address)
        said = self.says_to_recipient(address)
        if said == OK:
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        said = self.says_to_data()
        if said == OK:
            self.took += envelope.rcpt_tos
        return said


@pytest.fixture
def server() -> Iterator[MoodyServer]:
    moody = MoodyServer()
    try:
        yield moody
    finally:
        moody.stop()


@pytest.fixture
def short(quick: Settings) -> Settings:
    """A minute lasts a fifth of a second, so five of them one."""
    quick.MINUTE_SECONDS = 0.2
    quick.BACKOFF_BASE_SECONDS = 0.05
    quick.RATE_LIMITED_SECONDS = 0.05
    quick.TROUBLE_WAIT_MAX_MINUTES = 1
    quick.TROUBLE_OFFLINE_MINUTES = 1000
    return quick


def mail_run(stage: Stage, server: MoodyServer, readers: int) -> tuple[Run, Account]:
    account = AccountFactory.create(
        owner=stage.owner,
        channel="email",
        transport="email",
        profile="email_newsletter",
        credentials={
            "host": "127.0.0.1",
            "port": str(server.port),
            "security": "none",
            "from_address": "news@school.example",
        },
    )
    LimitFactory.create(account=account, action="email", per_minute=60_000)
    people = [
        RecipientFactory.create(
            owner=stage.owner,
            channel="email",
            kind="mailbox",
            address=f"reader{number}@example.com",
            name="Ada",
        )
        for number in range(readers)
    ]
    run = stage.fire(account, to=people, channel="email", action="email", subject="News")
    return run, account


def pumped(run: Run, account: Account, until: Callable[[], bool]) -> None:
    """Pump the account, as wake-ups would, until something is so."""
    ends = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < ends, (counted(run), kind_of(account), account.trouble)
        pump.pump(account.pk)
    run.refresh_from_db()


def ended(run: Run) -> Callable[[], bool]:
    def has() -> bool:
        run.refresh_from_db()
        return run.status != RunStatus.RUNNING

    return has


def kind_of(account: Account) -> str:
    account.refresh_from_db()
    return account.trouble_kind


def says(account: Account, kind: str, cause: str) -> None:
    """The account's sentence names its trouble, since when, and the cause."""
    sentence = sentence_of(account)
    assert re.match(rf"{SAYS[kind]} \d\d:\d\d \(.*{re.escape(cause)}.*\)\.", sentence), sentence


def test_greylisted_readers_get_their_mail_later_and_hold_up_nobody(
    stage: Stage, short: Settings, server: MoodyServer
) -> None:
    """300 s of greylisting, scaled; only half of the readers' servers do it."""
    first: dict[str, float] = {}
    looked = threading.Event()

    def greylists(address: str) -> str:
        if int(address.partition("@")[0][-1]) % 2:
            return OK
        began = first.setdefault(address, time.monotonic())
        waited = time.monotonic() - began
        return (
            OK
            if waited >= 1.0 and looked.is_set()
            else "450 4.2.0 <reader>: Recipient address rejected: Greylisted"
        )

    server.says_to_recipient = greylists
    run, account = mail_run(stage, server, 10)
    pump.pump(account.pk)
    taken_at_once = set(server.took)
    assert {f"reader{number}@example.com" for number in (1, 3, 5, 7, 9)} <= taken_at_once
    assert kind_of(account) == "", "nobody else has to wait"
    assert re.match(r"Sending|The next message is planned for later|All messages", sentence_of(account))
    looked.set()
    pumped(run, account, ended(run))
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 10})
    assert sentence_of(account) == DONE
    assert sorted(server.took) == sorted({*server.took}), "each once"
    add_up(run)


def test_a_full_mailbox_is_tried_for_a_day_and_then_given_up(
    stage: Stage, short: Settings, server: MoodyServer
) -> None:
    short.MINUTE_SECONDS = 0.001
    server.says_to_recipient = lambda address: (
        "452 4.2.2 Mailbox full" if address.startswith("reader0") else OK
    )
    run, account = mail_run(stage, server, 3)
    pumped(run, account, ended(run))
    assert counted(run) == {"sent": 2, "failed": 1}
    assert server.asked.count("reader0@example.com") == 9
    assert "gave up after 9 attempts" in run.targets.get(status="failed").error


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("450 4.7.1 Error: too much mail from 127.0.0.1", "rate_limited"),
        ("421 4.7.0 Too many messages, slow down", "rate_limited"),
        ("452 4.3.1 Insufficient system storage", "server_errors"),
        ("421 4.3.2 System shutting down", "server_errors"),
    ],
)
def test_a_server_that_takes_nothing_for_a_while_fails_nobody(
    stage: Stage, short: Settings, server: MoodyServer, said: str, kind: str
) -> None:
    server.says_to_sender = lambda: said
    run, account = mail_run(stage, server, 6)
    pumped(run, account, lambda: kind_of(account) == kind and account.trouble_count >= 4)
    assert said[:3] in account.trouble
    says(account, kind, said[:3])
    assert account.held_until is not None
    assert counted(run) == {"pending": 6}
    assert not run.targets.filter(attempts__gt=0).exists()
    server.says_to_sender = lambda: OK
    pumped(run, account, ended(run))
    assert (run.status, counted(run), kind_of(account)) == (RunStatus.SUCCESS, {"sent": 6}, "")
    assert sentence_of(account) == DONE


def test_a_storm_of_server_errors_holds_the_account_and_fails_nobody(
    stage: Stage, short: Settings, server: MoodyServer
) -> None:
    server.says_to_data = lambda: "451 4.3.0 Error: queue file write error"
    run, account = mail_run(stage, server, 12)
    pumped(run, account, lambda: kind_of(account) == "server_errors")
    says(account, "server_errors", "queue file write error")
    server.says_to_data = lambda: OK
    pumped(run, account, ended(run))
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 12})
    assert sentence_of(account) == DONE


def test_a_server_that_restarts_for_minutes_fails_nobody(
    stage: Stage, short: Settings, server: MoodyServer
) -> None:
    run, account = mail_run(stage, server, 8)
    server.stop()
    pumped(run, account, lambda: kind_of(account) == "unreachable" and account.trouble_count >= 5)
    says(account, "unreachable", f"connection refused, 127.0.0.1:{server.port}")
    assert counted(run) == {"pending": 8}
    assert set(Attempt.objects.filter(run=run).values_list("outcome", flat=True)) == {"unreachable"}
    server.start()
    pumped(run, account, ended(run))
    assert (run.status, counted(run), kind_of(account)) == (RunStatus.SUCCESS, {"sent": 8}, "")
    assert sentence_of(account) == DONE
    assert sorted(server.took) == sorted({*server.took}), "each once"
