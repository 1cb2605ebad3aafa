"""A real mail server (aiosmtpd) that can be made to misbehave, in the test's own event loop."""

import asyncio
import email
import email.policy
import hashlib
import logging
import re
import ssl
import warnings
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, Self
from urllib.parse import unquote

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from delivery.transports.email.send import EmailTransport
from tests.delivery.transports.harness import OF_MAIL, SECRET, Harness, Received, Scenario

USER = "sender@school.example"
logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # the server's own log has all that it is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A message as the server took it."""

    sender: str
    recipients: list[str]
    raw: bytes
    parsed: EmailMessage = field(repr=False)

    def text(self) -> str:
        return self._body("plain")

    def html(self) -> str:
        return self._body("html")

    def files(self) -> list[EmailMessage]:
        return [part for part in self.parsed.walk() if part.get_content_disposition()]

    def _body(self, kind: str) -> str:
        body = self.parsed.get_body((kind,))
        assert body is not None
        return str(body.get_content()).replace("\r\n", "\n")


class MailServer(Harness):
    kind = EmailTransport
    scenarios = frozenset(Scenario) - {
        Scenario.BREAKS_AFTER
    }  # a server that says no did not take the message
    address = "reader@example.com"
    refused_address = "nobody@example.com"
    takes_key = True
    means = OF_MAIL
    sender = USER

    def __init__(self, *, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None) -> None:
        self.delivered: list[Delivered] = []
        self.scenario: Scenario | None = None
        self.says: dict[str, str] = {}  # "MAIL", "RCPT", "RCPT address", "DATA", "." or "AUTH" to a reply
        self.leaves_at = ""  # the same, where it hangs up without a word
        self.password = SECRET
        self.wants_login = True
        self.connections = 0
        self.left = asyncio.Event()
        self.open: set[asyncio.BaseTransport] = set()
        self._tls, self._starttls = tls, starttls
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(
            self._protocol, "127.0.0.1", 0, ssl=self._tls
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        self._over.set()
        self._server.close()
        for transport in list(self.open):
            transport.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    def credentials(self) -> dict[str, str]:
        return self.credentials_on(self.port)

    def credentials_on(self, port: int) -> dict[str, str]:
        security = "tls" if self._tls else "starttls" if self._starttls else "none"
        return {
            "host": "localhost" if security != "none" else "127.0.0.1",
            "port": str(port),
            "security": security,
            "user": USER,
            "password": SECRET,
            "from_address": USER,
            "from_name": "Grüne Schule, Büro",
        }

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "password": f"{SECRET}-but-another"}

    def enter(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.says = {
            Scenario.NOT_CONNECTED: {"AUTH": "454 4.7.0 Temporary authentication failure"},
            Scenario.BLOCKED: {"AUTH": "535 5.7.8 Authentication credentials invalid"},
            Scenario.REJECTS: {f"RCPT {self.refused_address}": "550 5.1.1 No such user"},
            Scenario.REFUSES_FOR_NOW: {"RCPT": "450 4.2.1 Mailbox busy"},
            Scenario.GARBAGE: {".": "Welcome to nginx!"},
        }.get(scenario, {})

    def received(self) -> list[Received]:
        return [_received(mail) for mail in self.delivered]

    def uploads(self) -> int:
        return 0

    # What aiosmtpd asks

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.scenario is Scenario.RATE_LIMITS and self.delivered:
            return "450 4.7.1 Error: too much mail from 127.0.0.1"
        envelope.mail_from = address
        return await self._say(server, "MAIL")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        said = self.says.get(f"RCPT {address}") or await self._say(server, "RCPT")
        if said.startswith("250"):
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        refused = self.says.get(".", "")
        if not refused[:1].isdecimal():
            self._keep(envelope)
        if self.scenario is Scenario.HANGS:
            await self._over.wait()
        if self.scenario is Scenario.CUTS:
            self.leaves_at = "."
        return await self._say(server, ".")

    def _keep(self, envelope: Envelope) -> None:
        raw = envelope.original_content
        assert isinstance(raw, bytes)
        parsed = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.delivered.append(
            Delivered(
                sender=envelope.mail_from or "", recipients=list(envelope.rcpt_tos), raw=raw, parsed=parsed
            )
        )

    async def _say(self, server: SMTP, what: str) -> str:
        if self.leaves_at == what:
            assert server.transport is not None
            server.transport.close()
        return self.says.get(what, "250 OK")

    def _check(self, server: SMTP, session: Session, envelope: Envelope, how: str, told: Any) -> AuthResult:
        if said := self.says.get("AUTH"):
            return AuthResult(success=False, handled=False, message=said)
        right = isinstance(told, LoginPassword) and (told.login, told.password) == (
            USER.encode(),
            self.password.encode(),
        )
        return AuthResult(
            success=right, handled=False, message=None if right else f"535 5.7.8 {told} is wrong"
        )

    def _protocol(self) -> SMTP:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # a login without encryption
            return _Conversation(
                self,
                data_size_limit=2**25,
                hostname="mail.test",
                auth_required=self.wants_login,
                auth_require_tls=False,
                authenticator=self._check,
                auth_exclude_mechanism=[] if self.wants_login else ["PLAIN", "LOGIN"],
                require_starttls=self._starttls is not None,
                tls_context=self._starttls,
            )


class _Conversation(SMTP):
    """Counts, and can answer DATA with a no."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.event_handler.connections += 1
        self.event_handler.open.add(transport)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.event_handler.open.discard(self.transport)
        self.event_handler.left.set()
        super().connection_lost(error)

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        said = await self.event_handler._say(self, "DATA")
        if said.startswith("250"):
            await super().smtp_DATA(arg)
        else:
            await self.push(said)


def _received(mail: Delivered) -> Received:
    local = mail.parsed["Message-ID"].strip("<>").partition("@")[0]
    files = mail.files()
    content = files[0].get_payload(decode=True) if files else b""
    assert isinstance(content, bytes)
    return Received(
        address=mail.recipients[0],
        text=mail.text(),
        chars=len(mail.text()),
        key=unquote(re.sub(r"\.[0-9a-f]{24}$", "", local)),
        media=hashlib.sha256(content).hexdigest() if files else "",
        filename=(files[0].get_filename() or "") if files else "",
    )
