"""E-mail against a real postfix, where it is installed; elsewhere aiosmtpd says the same words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage

import pytest

from delivery.outcomes import Outcome, RateLimited, Rejected, Sent, TryAgain, Unreachable
from delivery.transports.base import AccountState, Message
from delivery.transports.email.send import EmailTransport
from tests.delivery.transports.harness import PATIENT
from tests.delivery.transports.postfix import ARCHIVE, READER, Postfix, running

BUSY = f"inline:{{ {{{READER}=450 4.2.1 busy}} }}"
pytestmark = pytest.mark.xdist_group("postfix")


@asynccontextmanager
async def to(server: Postfix, **credentials: str) -> AsyncIterator[EmailTransport]:
    transport = EmailTransport(server.credentials(**credentials), None, timeouts=PATIENT)
    yield transport
    await transport.close()


def text(address: str = READER, words: str = "Grüße 👋🏽, the bus leaves at nine.") -> Message:
    return Message(address=address, kind="text", text=words, subject="Ausflug nach Köln")


async def delivered(server: Postfix, mailbox: str, *, count: int) -> list[EmailMessage]:
    """Wait until as many e-mails have come, and return them."""
    for _ in range(400):
        if len(found := server.has_delivered(mailbox)) >= count:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"Only {len(found)} of {count} came to {mailbox}.")


async def test_what_is_sent_arrives_over_one_connection() -> None:
    with running() as server:
        async with to(server) as transport:
            assert await transport.status() is AccountState.WORKING
            for number in range(3):
                outcome = await transport.send(text(), f"run-1-{number}")
                assert outcome == Sent(provider_id=f"<run-1-{number}@school.example>")
        mails = await delivered(server, "reader", count=3)
        assert server.connections() == 1
    assert {mail["Subject"] for mail in mails} == {"Ausflug nach Köln"}
    body = mails[0].get_body(("plain",))
    assert body is not None
    assert body.get_content().strip() == "Grüße 👋🏽, the bus leaves at nine."


async def test_a_server_that_was_started_again_is_connected_to_again() -> None:
    with running() as server:
        async with to(server) as transport:
            assert isinstance(await transport.send(text(), "first"), Sent)
            server.order("stop")
            assert isinstance(await transport.send(text(), "while it is away"), Unreachable)
            server.order("start")
            assert isinstance(await transport.send(text(), "second"), Sent)
        await delivered(server, "reader", count=2)


@pytest.mark.parametrize(
    ("settings", "message", "means", "words"),
    [
        ({}, text("nobody@school.example"), Rejected, "550: 5.1.1"),
        ({}, text("somebody@elsewhere.example"), Rejected, "554: 5.7.1"),
        (
            {"smtpd_relay_restrictions": "defer_unauth_destination"},
            text("somebody@elsewhere.example"),
            TryAgain,
            "454: 4.7.1",
        ),
        ({"message_size_limit": "2000"}, text(words="long " * 1000), Rejected, "552: 5.3.4"),
        (
            {"smtpd_recipient_restrictions": f"check_recipient_access {BUSY}"},
            text(),
            TryAgain,
            "450: 4.2.1",
        ),
    ],
    ids=["unknown", "relay refused", "relay put off", "too large", "mailbox busy"],
)
async def test_what_its_refusals_mean(
    settings: dict[str, str], message: Message, means: type[Outcome], words: str
) -> None:
    with running(**settings) as server:
        async with to(server) as transport:
            outcome = await transport.send(message, "k")
    assert type(outcome) is means
    assert not isinstance(outcome, Sent)
    assert words in outcome.reason


async def test_too_much_mail_asks_for_less() -> None:
    with running(smtpd_client_message_rate_limit="1") as server:
        async with to(server) as transport:
            assert isinstance(await transport.send(text(), "first"), Sent)
            outcome = await transport.send(text(), "second")
        await delivered(server, "reader", count=1)
    assert isinstance(outcome, RateLimited)
    assert "450: 4.7.1 Error: too much mail" in outcome.reason


async def test_too_many_connections_ask_for_less() -> None:
    with running(smtpd_client_connection_count_limit="1") as server:
        async with to(server) as first, to(server) as second:
            assert isinstance(await first.send(text(), "first"), Sent)
            outcome = await second.send(text(), "second")
    assert isinstance(outcome, RateLimited)
    assert "421: 4.7.0" in outcome.reason


async def test_a_copy_that_is_one_recipient_too_many_keeps_the_message_from_nobody() -> None:
    with running(smtpd_client_recipient_rate_limit="1") as server:
        async with to(server, copy_to=ARCHIVE) as transport:
            assert isinstance(await transport.send(text(), "k"), Sent)
        await delivered(server, "reader", count=1)
        assert server.has_delivered("archive") == []
        assert "nrcpt=1 " in (server.folder / "log").read_text()
