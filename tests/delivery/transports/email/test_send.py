"""E-mail against a real mail server."""

import smtplib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from delivery.outcomes import (
    AccountBlocked,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.transports.base import AccountState, CredentialsError, Message
from delivery.transports.email import send
from delivery.transports.email.send import EmailTransport
from delivery.transports.leaving import HeldBackError, looking_with
from delivery.transports.mail.composing import is_sealed
from tests.delivery.transports.certificate import self_signed
from tests.delivery.transports.contract import InlineMediaContract, TransportContract
from tests.delivery.transports.harness import PATIENT
from tests.delivery.transports.mail_server import USER, MailServer


class TestEmail(TransportContract, InlineMediaContract):
    service = MailServer


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as server:
        yield server


@asynccontextmanager
async def to(server: MailServer, **credentials: str) -> AsyncIterator[EmailTransport]:
    transport = EmailTransport(server.credentials() | credentials, None, timeouts=PATIENT)
    yield transport
    await transport.close()


def text(address: str = "reader@example.com") -> Message:
    return Message(address=address, kind="text", text="The bus leaves at nine.", subject="Bus")


@pytest.mark.parametrize(
    ("at", "said", "means"),
    [
        ("MAIL", "421 4.7.0 Too many messages", RateLimited),
        ("MAIL", "450 4.7.1 Error: too much mail", RateLimited),
        ("RCPT", "452 4.5.3 Too many recipients", RateLimited),
        ("RCPT", "550 5.1.1 No such user", Rejected),
        ("DATA", "451 4.3.0 Not now", ServerError),
        ("DATA", "554 5.5.1 No valid recipients", Rejected),
        (".", "451 4.7.1 Try again in 2 minutes", TryAgain),
        (".", "552 5.3.4 Message too big", Rejected),
    ],
)
async def test_after_a_no_the_next_message_goes_out(
    server: MailServer, at: str, said: str, means: type[Outcome]
) -> None:
    async with to(server) as transport:
        server.says = {at: said}
        assert type(await transport.send(text(), "first")) is means
        assert server.delivered == []

        server.says = {}
        assert isinstance(await transport.send(text(), "second"), Sent)
        assert len(server.delivered) == 1


async def test_the_connection_is_kept_over_messages_and_refusals(server: MailServer) -> None:
    async with to(server) as transport:
        server.says = {"RCPT nobody@example.com": "550 5.1.1 No such user"}
        for address in ("a@example.com", "nobody@example.com", "b@example.com"):
            await transport.send(text(address), address)
        assert await transport.status() is AccountState.WORKING
        assert [mail.recipients for mail in server.delivered] == [["a@example.com"], ["b@example.com"]]
        assert server.connections == 1
    assert server.delivered[0].sender == USER


async def test_a_connection_that_the_server_closed_is_replaced(server: MailServer) -> None:
    async with to(server) as transport:
        await transport.send(text(), "first")
        for connection in list(server.open):
            connection.write(b"421 4.4.2 Timeout exceeded\r\n")  # type: ignore[attr-defined]
            connection.close()
        assert isinstance(await transport.send(text(), "second"), Sent)
    assert server.connections == 2


@pytest.mark.parametrize(("at", "means"), [("MAIL", ServerError), ("RCPT", ServerError), (".", Unknown)])
async def test_a_cut_is_in_doubt_only_once_the_message_was_on_its_way(
    server: MailServer, at: str, means: type[Outcome]
) -> None:
    async with to(server) as transport:
        server.leaves_at = at
        assert type(await transport.send(text(), "k")) is means


class TestCopies:
    """A message with a copy has two recipients, and each may be refused."""

    @pytest.fixture
    async def copying(self, server: MailServer) -> AsyncIterator[EmailTransport]:
        async with to(server, copy_to="archive@school.example") as transport:
            yield transport

    async def test_a_copy_goes_out_unseen(self, server: MailServer, copying: EmailTransport) -> None:
        assert isinstance(await copying.send(text(), "k"), Sent)
        [mail] = server.delivered
        assert mail.recipients == ["reader@example.com", "archive@school.example"]
        assert b"archive@" not in mail.raw

    @pytest.mark.parametrize("said", ["450 4.7.1 Error: too many recipients", "550 5.1.1 No such user"])
    async def test_a_refused_copy_keeps_the_message_from_nobody(
        self, server: MailServer, copying: EmailTransport, said: str
    ) -> None:
        server.says = {"RCPT archive@school.example": said}
        assert isinstance(await copying.send(text(), "k"), Sent)
        assert [mail.recipients for mail in server.delivered] == [["reader@example.com"]]

    async def test_without_its_recipient_no_copy_goes_out(
        self, server: MailServer, copying: EmailTransport
    ) -> None:
        server.says = {"RCPT reader@example.com": "550 5.1.1 No such user"}
        assert isinstance(await copying.send(text(), "k"), Rejected)
        assert server.delivered == []

    async def test_a_server_that_leaves_at_the_copy_took_nothing(
        self, server: MailServer, copying: EmailTransport
    ) -> None:
        server.says = {"RCPT archive@school.example": "421 4.3.2 Shutting down"}
        assert isinstance(await copying.send(text(), "k"), ServerError)
        assert server.delivered == []


async def test_what_arrives_is_from_the_account_to_the_recipient(server: MailServer) -> None:
    async with to(server) as transport:
        outcome = await transport.send(
            replace(text("zoe@bücher.example"), unsubscribe_url="https://x.example/u/1"), "run-1-0"
        )
    [mail] = server.delivered
    assert outcome == Sent(provider_id=mail.parsed["Message-ID"])
    assert is_sealed(mail.parsed["Message-ID"], "school.example")
    assert mail.parsed["Message-ID"].startswith("<run-1-0.")
    assert mail.recipients == ["zoe@xn--bcher-kva.example"]
    assert mail.parsed["From"].addresses[0].display_name == "Grüne Schule, Büro"
    assert mail.parsed["List-Unsubscribe"] == "<https://x.example/u/1>"
    assert mail.parsed["Subject"] == "Bus"


async def test_an_idle_connection_says_goodbye_by_itself(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "IDLE_SECONDS", 0.05)
    async with to(server) as transport:
        await transport.send(text(), "k")
        await server.left.wait()
    assert server.open == set()


class TestEncryption:
    @pytest.fixture
    def certificate(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
        """The server's; its issuer is not known until `SSL_CERT_FILE` names it."""
        context, path = self_signed(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        return context

    @pytest.mark.parametrize("how", ["tls", "starttls"])
    async def test_an_encrypted_connection_carries_messages(
        self, certificate: ssl.SSLContext, how: str
    ) -> None:
        async with MailServer(**{how: certificate}) as server, to(server) as transport:
            assert isinstance(await transport.send(text(), "k"), Sent)

    @pytest.mark.parametrize("how", ["tls", "starttls"])
    async def test_a_certificate_that_nobody_vouches_for_is_refused(
        self, certificate: ssl.SSLContext, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SSL_CERT_FILE")
        async with MailServer(**{how: certificate}) as server, to(server) as transport:
            outcome = await transport.send(text(), "k")
            where = f"localhost:{server.port}"
        assert outcome == Unreachable(reason=f"TLS failed: certificate is self-signed, {where}")

    async def test_a_password_never_travels_where_encryption_was_wanted_and_is_not_offered(
        self, server: MailServer
    ) -> None:
        async with to(server, security="starttls") as transport:
            outcome = await transport.send(text(), "k")
        assert isinstance(outcome, AccountBlocked)
        assert "STARTTLS" in outcome.reason


async def test_a_password_may_have_any_letters(server: MailServer) -> None:
    server.password = "pässwörd-ü"
    async with to(server, password="pässwörd-ü") as transport:
        assert isinstance(await transport.send(text(), "k"), Sent)


async def test_a_server_without_logins_takes_none(server: MailServer) -> None:
    server.wants_login = False
    async with to(server, user="", password="") as transport:
        assert isinstance(await transport.send(text(), "k"), Sent)
    async with to(server) as transport:
        assert isinstance(await transport.send(text(), "k"), AccountBlocked)


@pytest.mark.parametrize("port", ["0", "65536", "smtp", "-1"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    with pytest.raises(CredentialsError, match="Port"):
        EmailTransport({"host": "a", "from_address": "a@b.example", "port": port}, None)


async def test_a_server_whose_name_nobody_knows_is_tried_again(server: MailServer) -> None:
    async with to(server, host="nobody.invalid") as transport:
        assert isinstance(await transport.send(text(), "k"), Unreachable)


@pytest.mark.parametrize("refused", [True, False])
async def test_the_last_look_is_before_the_end_of_a_large_message(
    server: MailServer, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """An attachment may take minutes; without its end the server forgets the message."""
    written: list[bytes | str] = []
    at_the_look: list[int] = []
    send = smtplib.SMTP.send

    def and_note(smtp: smtplib.SMTP, said: bytes) -> None:
        written.append(said)
        send(smtp, said)

    async def look() -> None:
        at_the_look.append(sum(map(len, written)))
        if refused:
            raise HeldBackError("its window closes")

    monkeypatch.setattr(smtplib.SMTP, "send", and_note)
    large = replace(text(), text="The bus leaves at nine.\n" * 20_000)
    async with to(server) as transport:
        with looking_with(look):
            if refused:
                with pytest.raises(HeldBackError):
                    await transport.send(large, "k")
            else:
                assert isinstance(await transport.send(large, "k"), Sent)
    [early] = at_the_look
    assert early > 400_000
    assert len(server.delivered) == (0 if refused else 1)
    if not refused:
        assert server.delivered[0].text().count("The bus") == 20_000


def test_a_name_that_no_server_can_have_is_refused_at_once() -> None:
    with pytest.raises(CredentialsError, match="Mail server"):
        EmailTransport({"host": "x" * 80 + ".invalid", "from_address": "a@b.example"}, None)
