"""E-mail through any mail server, by SMTP."""

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import BinaryIO

from delivery.outcomes import AccountBlocked, Outcome, RateLimited, Rejected, Sent, TryAgain
from delivery.transports.base import (
    AccountState,
    Capabilities,
    CredentialField,
    CredentialsError,
    Message,
    Polled,
    Transport,
    UnansweredError,
)
from delivery.transports.http.files import opened
from delivery.transports.mail import imap
from delivery.transports.mail.composing import SENDER_FIELDS, Sender, written_out
from delivery.transports.mail.smtp import Envelope, Mailman, Server
from delivery.transports.reports.mailbox import event_of

MOST_FILE_BYTES = 25 * 10**6  # what most mail servers take, before they count the encoding
IDLE_SECONDS = 30.0  # most servers wait for minutes, and none likes a guest who says nothing for longer
# Of their own, for all accounts together: the loop's few threads must stay free for files.
_threads = ThreadPoolExecutor(max_workers=64, thread_name_prefix="smtp")


class EmailTransport(Transport):
    """Each message is handed over by a thread; the connection stays open for the next ones."""

    kind = "email"
    label = "E-mail (SMTP)"
    about = "A mailbox or relay of your own. It takes the server's name, a login and the sender's address."
    channels = frozenset({"email"})
    default_capabilities = Capabilities(polling=True, actions=frozenset({"email"}))
    credential_fields = (
        CredentialField(
            name="host", place=True, label="Mail server", help="For example smtp.school.example."
        ),
        CredentialField(name="port", place=True, label="Port", default="587"),
        CredentialField(
            name="security",
            place=True,
            label="Encryption",
            default="starttls",
            choices=(
                ("starttls", "STARTTLS (port 587)"),
                ("tls", "TLS from the start (port 465)"),
                ("none", "None: only on your own network"),
            ),
        ),
        CredentialField(name="user", label="User", required=False),
        CredentialField(name="password", label="Password", secret=True, required=False),
        CredentialField(
            name="imap_host",
            place=True,
            label="Mailbox server",
            required=False,
            help="Where answers arrive (IMAP, same login). Without it replies, STOP and bounces are not read.",
        ),
        CredentialField(name="imap_port", place=True, label="Mailbox port", required=False, default="993"),
        *SENDER_FIELDS,
    )

    def prepare(self) -> None:
        self._sender = Sender(self.credentials)
        self._mailman = Mailman(self._server())
        self._goodbye: asyncio.TimerHandle | None = None
        self._mailbox = self._inbox() if self.credentials["imap_host"] else None

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.default_capabilities, polling=self._mailbox is not None)

    async def send(self, message: Message, key: str) -> Outcome:
        if message.media is None:
            return await self._in_thread(lambda: self._send(message, key, seconds=self.timeouts.total))
        file = await opened(message.media, most_bytes=MOST_FILE_BYTES)
        if isinstance(file, Rejected | TryAgain):
            return file
        return await self._in_thread(lambda: self._send(message, key, file, seconds=self.timeouts.upload))

    async def status(self) -> AccountState:
        match await self._in_thread(lambda: self._mailman.try_out(seconds=self.timeouts.total)):
            case Sent() | RateLimited():
                return AccountState.WORKING
            case AccountBlocked():
                return AccountState.BLOCKED
            case TryAgain():
                return AccountState.UNREACHABLE
            case _:
                return AccountState.STOPPED

    async def poll(self, since: str) -> Polled:
        mailbox = self._mailbox
        if mailbox is None:
            return await super().poll(since)
        loop = asyncio.get_running_loop()
        try:
            messages, here = await loop.run_in_executor(_threads, lambda: imap.fetch(mailbox, since))
        except imap.FAILURES as error:
            # Its text may hold the password: the type is enough.
            raise UnansweredError(
                TryAgain(reason=f"the mailbox cannot be read ({type(error).__name__})")
            ) from None
        own, now = self._sender.address, datetime.now(UTC)
        events = (event_of(message, own=own, now=now) for message in messages)
        return Polled(events=tuple(event for event in events if event is not None), since=here)

    async def close(self) -> None:
        if self._goodbye is not None:
            self._goodbye.cancel()
        await asyncio.get_running_loop().run_in_executor(_threads, self._mailman.close)

    def _send(self, message: Message, key: str, file: BinaryIO | None = None, *, seconds: float) -> Outcome:
        with file or io.BytesIO() as content:
            mail = self._sender.compose(message, key, content.read())
        if isinstance(mail, Rejected):
            return mail
        envelope = Envelope(
            sender=self._sender.address,
            recipients=mail.recipients(),
            content=written_out(mail),
        )
        outcome = self._mailman.deliver(envelope, seconds=seconds)
        return Sent(provider_id=self._sender.message_id(key)) if isinstance(outcome, Sent) else outcome

    async def _in_thread(self, work: Callable[[], Outcome]) -> Outcome:
        loop = asyncio.get_running_loop()
        if self._goodbye is not None:
            self._goodbye.cancel()
        try:
            return await loop.run_in_executor(_threads, work)
        finally:
            self._goodbye = loop.call_later(IDLE_SECONDS, _threads.submit, self._mailman.close)

    def _inbox(self) -> imap.Mailbox:
        return imap.Mailbox(
            host=self.credentials["imap_host"],
            port=_port(self.credentials["imap_port"], label="Mailbox port"),
            encrypted=self.credentials["security"] != "none",
            user=self.credentials["user"],
            password=self.credentials["password"],
            seconds=self.timeouts.total,
            reach=self.reach,
        )

    def _server(self) -> Server:
        return Server(
            host=self.credentials["host"],
            port=_port(self.credentials["port"], label="Port"),
            security=self.credentials["security"],
            user=self.credentials["user"],
            password=self.credentials["password"],
            our_name=self._sender.domain,
            connect_seconds=self.timeouts.connect,
            safe=self.safe,
            reach=self.reach,
        )


def _port(told: str, *, label: str) -> int:
    if not told.isdecimal() or not 0 < int(told) < 65536:
        raise CredentialsError(f"{label} is not a number from 1 to 65535.")
    return int(told)
