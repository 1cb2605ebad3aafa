"""What arrives in a mailbox: replies, and what could not be delivered."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from accounts.models import Account
from accounts.models.account import Channel
from delivery.inbound import handling, intake, polling
from delivery.reach import reach_of
from delivery.transports.base import (
    CredentialsError,
    Inbound,
    NotOfferedError,
    Receipt,
    ReceiptState,
    UnansweredError,
)
from delivery.transports.email import EmailTransport
from delivery.transports.reports.mailbox import event_of
from reminders.inbound import handle
from tests.delivery.transports.harness import HASTY, PATIENT, SECRET, port_without_server
from tests.delivery.transports.mailbox_server import USER, MailboxServer
from tests.factories import AccountFactory, RecipientFactory, RunTargetFactory

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
BOUNCE = """From: MAILER-DAEMON@mx.example
Message-ID: <bounce-1@mx.example>
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

Sorry.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; gone@example.com
Action: {action}
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 No such user

--b
Content-Type: {kind}

Message-ID: <run-1-0@school.example>
Subject: Bus

--b--
"""


def mail(words: str = "Yes!", *, headers: str = "", sender: str = "Anna <Anna@Example.com>") -> bytes:
    head = f"From: {sender}\nMessage-ID: <a1@example.com>\n{headers}\n"
    return f"{head}\n{words}".replace("\n", "\r\n").encode()


def read(raw: bytes) -> Inbound | Receipt | None:
    event = event_of(raw, own=USER, now=NOW)
    assert event is None or isinstance(event, Inbound | Receipt)
    return event


def said(words: str, **more: str) -> str:
    event = read(mail(words, **more))
    assert isinstance(event, Inbound)
    return event.text


def test_a_reply_is_its_senders_word() -> None:
    assert read(mail("STOP")) == Inbound(
        event_id="<a1@example.com>",
        provider_id="<a1@example.com>",
        sender="anna@example.com",
        chat="anna@example.com",
        text="STOP",
        at=NOW,
    )


@pytest.mark.parametrize(
    "words",
    [
        "STOP",
        "STOP\n\nOn Wed, 18 Nov 2026 at 9:00, School <news@school.example> wrote:\n> The bus\n> leaves",
        "STOP\n\nAm 18.11.2026 schrieb School\n<news@school.example>:\n\n> Der Bus",
        "STOP\n\n-----Original Message-----\nFrom: School",
        "STOP\n\n________________________________\nFrom: School",
    ],
)
def test_what_it_quotes_is_not_said(words: str) -> None:
    assert said(words) == "STOP"


def test_a_page_is_read_as_its_words() -> None:
    page = "<style>p {}</style><p>STOP<br>please</p><blockquote>The bus</blockquote>"
    assert said(page, headers="Content-Type: text/html; charset=utf-8") == "STOP\nplease"


@pytest.mark.parametrize(
    "raw",
    [
        mail(headers="Auto-Submitted: auto-replied\n"),
        mail(headers="Precedence: bulk\n"),
        mail(sender=f"School <{USER.upper()}>"),
        mail(sender=""),
        b"",
        b"\xff\xfe\x00" * 99,
        b"Content-Type: multipart/mixed; boundary=\r\n\r\n--",
        b"Content-Type: text/plain; charset=nowhere\r\nFrom: \xff\r\n\r\nHi",
    ],
)
def test_what_no_person_answered_is_no_reply(raw: bytes) -> None:
    assert read(raw) is None


@pytest.mark.parametrize("kind", ["message/rfc822", "text/rfc822-headers"])
def test_a_message_that_came_back_has_failed(kind: str) -> None:
    assert read(BOUNCE.format(action="failed", kind=kind).encode()) == Receipt(
        event_id="<bounce-1@mx.example>",
        provider_id="<run-1-0@school.example>",
        state=ReceiptState.FAILED,
        at=NOW,
        reason="smtp; 550 5.1.1 No such user",
    )


def test_a_delay_is_no_failure() -> None:
    assert read(BOUNCE.format(action="delayed", kind="message/rfc822").encode()) is None


@pytest.fixture
def account(db: None) -> Account:
    return AccountFactory.create(channel=Channel.EMAIL, transport="email", credentials={})


def take(account: Account, raw: bytes) -> None:
    event = read(raw)
    assert event is not None
    intake.store(account, [event])
    handling.work(account.pk, on_message=handle)


def test_who_answers_stop_is_opted_out(account: Account) -> None:
    anna = RecipientFactory.create(
        owner=account.owner, kind="mailbox", channel=Channel.EMAIL, address="anna@example.com"
    )
    take(account, mail("STOP\n\n> The bus leaves at nine."))
    anna.refresh_from_db()
    assert anna.opted_out_at is not None


def test_a_message_that_came_back_shows_on_its_target(account: Account) -> None:
    target = RunTargetFactory.create(account=account, sent=True, provider_id="<run-1-0@school.example>")
    take(account, BOUNCE.format(action="failed", kind="message/rfc822").encode())
    target.refresh_from_db()
    assert target.error == "Taken, but reported as not delivered later: smtp; 550 5.1.1 No such user."


def test_accounts_without_a_mailbox_hold_up_nobody(account: Account) -> None:
    polling.poll_all()
    account.refresh_from_db()
    assert account.polled_at is not None
    assert account.poll_since == ""


class TestReading:
    @pytest.fixture
    async def server(self) -> AsyncIterator[MailboxServer]:
        async with MailboxServer() as server:
            yield server

    def account(self, port: int, **more: str) -> EmailTransport:
        told = {
            "host": "127.0.0.1",
            "security": "none",
            "from_address": USER,
            "user": USER,
            "password": SECRET,
        }
        told |= {"imap_host": "127.0.0.1", "imap_port": str(port), **more}
        return EmailTransport(told, None, timeouts=PATIENT)

    async def test_what_comes_is_read_once_and_nothing_of_before(self, server: MailboxServer) -> None:
        server.receive(mail("long ago"))
        transport = self.account(server.port)
        start = await transport.poll("")
        assert (start.events, start.since) == ((), "7:1")
        server.receive(mail("Yes!"))
        server.receive(mail(sender=USER))
        polled = await transport.poll(start.since)
        assert [event.text for event in polled.events if isinstance(event, Inbound)] == ["Yes!"]
        again = await transport.poll(polled.since)
        assert (again.events, again.since) == ((), polled.since)

    async def test_nothing_in_it_is_changed(self, server: MailboxServer) -> None:
        server.receive(mail())
        transport = self.account(server.port)
        await transport.poll((await transport.poll("")).since)
        assert set(server.commands) == {"CAPABILITY", "LOGIN", "EXAMINE", "UID", "LOGOUT"}

    async def test_a_mailbox_that_was_made_anew_is_a_beginning(self, server: MailboxServer) -> None:
        transport = self.account(server.port)
        start = await transport.poll("")
        server.validity += 1
        server.receive(mail())
        assert (await transport.poll(start.since)).events == ()

    async def test_many_come_in_turns(self, server: MailboxServer) -> None:
        transport = self.account(server.port)
        polled = await transport.poll("")
        for number in range(70):
            server.receive(mail(str(number)))
        seen = []
        for _ in range(3):
            polled = await transport.poll(polled.since)
            seen += [event.text for event in polled.events if isinstance(event, Inbound)]
        assert seen == [str(number) for number in range(70)]

    async def test_what_cannot_be_read_says_so_without_the_password(self, server: MailboxServer) -> None:
        with port_without_server() as port, pytest.raises(UnansweredError, match="mailbox"):
            await self.account(port).poll("")
        with pytest.raises(UnansweredError) as raised:
            await self.account(server.port, password=f"{SECRET}-but-another").poll("")
        assert SECRET not in repr(raised.value)
        server.garbage = True
        with pytest.raises(UnansweredError, match="mailbox"):
            await self.account(server.port).poll("")

    async def test_a_private_address_is_out_of_reach(self, server: MailboxServer) -> None:
        told = {"host": "a", "from_address": USER, "imap_host": "127.0.0.1", "imap_port": str(server.port)}
        transport = EmailTransport(told, None, timeouts=HASTY, reach=reach_of(["none"]))
        with pytest.raises(UnansweredError, match="OutOfReach"):
            await transport.poll("")
        assert server.commands == []

    async def test_without_a_mailbox_nothing_is_read(self) -> None:
        transport = self.account(993, imap_host="")
        assert not transport.capabilities.polling
        with pytest.raises(NotOfferedError):
            await transport.poll("")

    def test_a_port_that_is_none_is_named(self) -> None:
        with pytest.raises(CredentialsError, match="Mailbox port"):
            self.account(0)
