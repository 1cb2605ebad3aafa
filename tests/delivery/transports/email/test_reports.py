"""E-mails in a mailbox: replies, and reports of failed deliveries."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from accounts.models import Account, Recipient
from accounts.models.account import Channel
from activity.models import Inbound as InboundRow
from delivery.inbound import polling, store
from delivery.transports.base import (
    CredentialsError,
    Inbound,
    Message,
    NotOfferedError,
    Polled,
    Receipt,
    ReceiptState,
    UnansweredError,
)
from delivery.transports.email.reports import PassedOver, Reader, event_of
from delivery.transports.email.send import EmailTransport
from delivery.transports.mail.composing import Sender, is_sealed
from delivery.transports.networks.allowed import allowed_networks
from reminders.conversations import replies
from tests.delivery.transports.harness import HASTY, PATIENT, SECRET, port_without_server
from tests.delivery.transports.mailbox_server import USER, MailboxServer
from tests.factories import AccountFactory, RecipientFactory, RunFactory, RunTargetFactory

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


READER = Reader(own=frozenset({USER}), domain="school.example")


def read(raw: bytes, reader: Reader = READER) -> Inbound | Receipt | PassedOver:
    event = event_of(raw, reader=reader, now=NOW)
    assert isinstance(event, Inbound | Receipt | PassedOver)
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
    ("raw", "why"),
    [
        (mail(headers="Auto-Submitted: auto-replied\n"), "automatic"),
        (mail(headers="Precedence: bulk\n"), "automatic"),
        (mail(sender=f"School <{USER.upper()}>"), "our own"),
        (mail(sender=""), "unreadable"),
        (b"", "unreadable"),
        (b"\xff\xfe\x00" * 99, "unreadable"),
        (b"Content-Type: multipart/mixed; boundary=\r\n\r\n--", "unreadable"),
    ],
)
def test_what_no_person_answered_is_no_reply(raw: bytes, why: str) -> None:
    assert read(raw) == PassedOver(why)


@pytest.mark.parametrize("kind", ["message/rfc822", "text/rfc822-headers"])
def test_a_message_that_came_back_has_failed(kind: str) -> None:
    assert read(BOUNCE.format(action="failed", kind=kind).encode()) == Receipt(
        event_id="<bounce-1@mx.example>",
        provider_id="<run-1-0@school.example>",
        state=ReceiptState.BOUNCED,
        at=NOW,
        reason="smtp; 550 5.1.1 No such user",
    )


@pytest.mark.parametrize(
    ("status", "diagnostic", "state"),
    [
        ("5.1.1", "smtp; 550 5.1.1 No such user", ReceiptState.BOUNCED),
        ("5.0.0", "smtp; 550 5.1.10 Recipient not found", ReceiptState.BOUNCED),  # the answer says more
        ("5.2.2", "smtp; 552 5.2.2 Mailbox full", ReceiptState.FAILED),
        ("5.7.1", "smtp; 550 5.7.1 Refused by policy", ReceiptState.FAILED),
        ("5.4.14", "", ReceiptState.FAILED),
    ],
)
def test_only_some_bounces_say_that_nobody_is_there(
    status: str, diagnostic: str, state: ReceiptState
) -> None:
    told = BOUNCE.format(action="failed", kind="message/rfc822").replace("5.1.1\n", f"{status}\n")
    report = read(told.replace("smtp; 550 5.1.1 No such user", diagnostic).encode())
    assert isinstance(report, Receipt)
    assert report.state is state


@pytest.mark.parametrize(
    ("kind", "complains"), [("abuse", True), ("Fraud", True), ("opt-out", False), ("not-spam", False)]
)
def test_a_feedback_report_of_a_mail_provider_is_a_complaint(kind: str, complains: bool) -> None:
    told = BOUNCE.format(action="delayed", kind="message/rfc822").replace(
        "message/delivery-status", "message/feedback-report"
    )
    raw = told.replace("Reporting-MTA: dns; mx.example\n\n", f"Feedback-Type: {kind}\n")
    event = read(raw.encode())
    assert isinstance(event, Receipt) is complains
    if isinstance(event, Receipt):
        assert event.state is ReceiptState.COMPLAINED


def test_a_delay_is_no_failure() -> None:
    assert read(BOUNCE.format(action="delayed", kind="message/rfc822").encode()) == PassedOver.NO_FAILURE


@pytest.fixture
def account(db: None) -> Account:
    return AccountFactory.create(channel=Channel.EMAIL, transport="email", credentials={})


def take(account: Account, raw: bytes) -> None:
    event = read(raw)
    assert not isinstance(event, PassedOver)
    store.store(account, [event])
    replies.work(account.pk)


def test_who_answers_stop_is_opted_out(account: Account) -> None:
    anna = RecipientFactory.create(
        owner=account.owner, kind="mailbox", channel=Channel.EMAIL, address="anna@example.com"
    )
    take(account, mail("STOP\n\n> The bus leaves at nine."))
    anna.refresh_from_db()
    assert anna.opted_out_at is not None


SEALED = "<run-1-0.0123456789abcdef01234567@school.example>"


class TestWhoAnswersFromAnotherAddress:
    @pytest.fixture
    def anna(self, account: Account) -> Recipient:
        anna = RecipientFactory.create(
            owner=account.owner, kind="mailbox", channel=Channel.EMAIL, address="anna@work.example"
        )
        RunTargetFactory.create(account=account, recipient=anna, sent=True, provider_id=SEALED)
        return anna

    def at(self, account: Account, address: str) -> Recipient | None:
        return Recipient.objects.filter(owner=account.owner, channel="email", address=address).first()

    def test_is_opted_out_at_both(self, account: Account, anna: Recipient) -> None:
        take(account, mail("STOP", headers=f"In-Reply-To: {SEALED}\n"))
        anna.refresh_from_db()
        assert anna.opted_out_at is not None
        other = self.at(account, "anna@example.com")
        assert other is not None
        assert other.opted_out_at is not None
        assert InboundRow.objects.get().recipient == anna

    def test_replies_as_the_recipient_and_is_not_added(self, account: Account, anna: Recipient) -> None:
        take(account, mail("Yes!", headers=f"References: <x@y> {SEALED}\n"))
        anna.refresh_from_db()
        assert anna.last_inbound_at is not None
        assert anna.opted_out_at is None
        assert self.at(account, "anna@example.com") is None

    @pytest.mark.parametrize(
        "guessed",
        [
            "<run-1-0@school.example>",
            "<run-1-0.ffffffffffffffffffffffff@school.example>",
            SEALED.replace("school", "evil"),
        ],
    )
    def test_a_message_that_they_never_got_opts_nobody_out(
        self, account: Account, anna: Recipient, guessed: str
    ) -> None:
        take(account, mail("STOP", headers=f"In-Reply-To: {guessed}\n", sender="evil@evil.example"))
        anna.refresh_from_db()
        assert anna.opted_out_at is None
        assert Recipient.objects.count() == 1

    def test_a_message_of_another_account_opts_nobody_out(self, account: Account, anna: Recipient) -> None:
        other = AccountFactory.create(channel=Channel.EMAIL, transport="email", credentials={})
        take(other, mail("STOP", headers=f"In-Reply-To: {SEALED}\n", sender="evil@evil.example"))
        anna.refresh_from_db()
        assert anna.opted_out_at is None

    def test_a_part_of_a_longer_message_is_known_too(self, account: Account, anna: Recipient) -> None:
        anna.targets.update(provider_id="<later@school.example>", earlier_ids=[SEALED])
        take(account, mail("STOP", headers=f"In-Reply-To: {SEALED}\n"))
        anna.refresh_from_db()
        assert anna.opted_out_at is not None


def test_who_answers_with_the_subject_alone_is_opted_out(account: Account) -> None:
    anna = RecipientFactory.create(
        owner=account.owner, kind="mailbox", channel=Channel.EMAIL, address="anna@example.com"
    )
    take(account, mail("Thanks\nAnna Lee", headers="Subject: Unsubscribe\n"))
    anna.refresh_from_db()
    assert anna.opted_out_at is not None


def test_every_recipient_of_a_run_has_a_seal_of_their_own() -> None:
    sender = Sender(
        {
            "from_address": USER,
            "reply_to": "",
            "copy_to": "",
            "from_name": "",
            "unsubscribe": "link",
            "password": "p",
        },
        seals=True,
    )
    to = [Message(address=f"{name}@example.com", kind="text", unsubscribe_url=name) for name in "ab"]
    ids = {sender.message_id(message, "run-1-0") for message in to for _ in range(2)}
    assert len(ids) == 2
    assert all(is_sealed(name, "school.example") for name in ids)


def test_a_message_that_came_back_shows_on_its_target(account: Account) -> None:
    run = RunFactory.create(sent=1)
    target = RunTargetFactory.create(
        account=account, run=run, sent=True, provider_id="<run-1-0@school.example>"
    )
    take(account, BOUNCE.format(action="failed", kind="message/rfc822").encode())
    target.refresh_from_db()
    assert (target.return_kind, target.return_reason) == ("permanent", "smtp; 550 5.1.1 No such user")
    assert target.recipient.undeliverable_at is not None


def test_accounts_without_a_mailbox_hold_up_nobody(account: Account) -> None:
    polling.poll_all()
    account.refresh_from_db()
    assert account.polled_at is not None
    assert account.poll_since == ""


def two_with_a_mailbox(account: Account) -> list[Account]:
    other = AccountFactory.create(channel=Channel.EMAIL, transport="email", credentials=MAILBOX)
    Account.objects.filter(pk=account.pk).update(credentials=other.credentials)
    return [account, other]


def test_one_account_that_breaks_holds_up_no_other(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def poll(self: EmailTransport, since: str) -> Polled:
        asked.append(self.owner)
        raise RuntimeError

    both = two_with_a_mailbox(account)
    monkeypatch.setattr(EmailTransport, "poll", poll)
    polling.poll_all()
    assert sorted(asked) == sorted(one.owner_id for one in both)


def test_events_that_cannot_be_kept_hold_up_no_other_and_are_fetched_again(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[int] = []

    async def poll(self: EmailTransport, since: str) -> Polled:
        return Polled(events=(), since="7:1")

    def keep(one: Account, events: object) -> None:
        came.append(one.pk)
        raise RuntimeError

    both = two_with_a_mailbox(account)
    monkeypatch.setattr(EmailTransport, "poll", poll)
    monkeypatch.setattr(store, "store", keep)
    polling.poll_all()
    assert sorted(came) == sorted(one.pk for one in both)
    assert set(Account.objects.values_list("poll_since", flat=True)) == {""}


MAILBOX = {"host": "a.example", "from_address": USER, "imap_host": "a.example"}


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

    async def test_a_poisonous_one_holds_up_nobody(self, server: MailboxServer) -> None:
        transport = self.account(server.port)
        start = await transport.poll("")
        poison = b"From: a@b.example\r\nContent-Type: text/html\r\n\r\n" + b"<a " * 300_000
        deep = b"".join(
            b"Content-Type: multipart/mixed; boundary=%d\r\n\r\n--%d\r\n" % (n, n) for n in range(3000)
        )
        for raw in (
            mail("one"),
            poison,
            deep,
            b"\xff" * 500,
            mail(headers="Precedence: bulk\n"),
            mail("two"),
        ):
            server.receive(raw)
        polled = await transport.poll(start.since)
        said = [event.text for event in polled.events if isinstance(event, Inbound)]
        assert (said[0], said[-1]) == ("one", "two")
        assert set(polled.passed_over) == {"unreadable", "automatic"}
        assert len(polled.events) + len(polled.passed_over) == 6

    async def test_a_server_that_sends_more_than_it_was_asked_for_is_left(
        self, server: MailboxServer
    ) -> None:
        transport = self.account(server.port)
        start = await transport.poll("")
        server.receive(mail("Yes!"))
        server.boasts = 10**12
        with pytest.raises(UnansweredError, match="mailbox"):
            await transport.poll(start.since)

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
        transport = EmailTransport(told, None, timeouts=HASTY, networks=allowed_networks(["none"]))
        with pytest.raises(UnansweredError, match="PRIVATE_NETWORKS"):
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
