"""E-mail through any mail server, by SMTP."""

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import BinaryIO

from config.shares import SharedThreads
from delivery.outcomes import (
    AccountBlocked,
    HeldBack,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
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
from delivery.transports.email.reports import PassedOver, Reader, event_of
from delivery.transports.http.files import opened
from delivery.transports.leaving import from_thread
from delivery.transports.mail import imap
from delivery.transports.mail.composing import SENDER_FIELDS, Sender, written_out
from delivery.transports.mail.smtp import Envelope, Server, SmtpConnections
from delivery.transports.networks.addresses import BadWebAddressError, host_name
from delivery.transports.networks.allowed import AddressNotAllowedError
from delivery.transports.networks.names import on_behalf_of

MOST_FILE_BYTES = 25 * 10**6  # the size that most mail servers take, without the encoding
IDLE_SECONDS = 30.0  # most servers close a connection that is idle for some minutes
CLOSE_SECONDS = 1.0  # seconds that `close` waits for its connections
# Separate threads, which owners share: the loop's few threads must stay free for files. Reading mailboxes has others,
# so that a silent mailbox delays no message.
_threads = SharedThreads(total=128, each=64, name="smtp")
_mailbox_threads = SharedThreads(total=64, each=16, name="imap")
LONGEST_WAIT = 0.5  # share of a message's time that it may wait for a thread


class EmailTransport(Transport):
    """E-mail by SMTP. A thread hands each message over; the connection stays open for the next ones."""

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
            help="The mailbox for answers (IMAP, same login). Without it, replies, STOP and bounces are not read.",
        ),
        CredentialField(name="imap_port", place=True, label="Mailbox port", required=False, default="993"),
        CredentialField(
            name="authserv_id",
            label="Name in Authentication-Results",
            required=False,
            help="As received e-mails have it, for example mx.google.com. With it, an e-mail whose sender that server "
            "has not checked counts only where it answers one of ours.",
        ),
        *SENDER_FIELDS,
    )

    def prepare(self) -> None:
        self._sender = Sender(self.credentials, seals=True)
        self._connections = SmtpConnections(self._server())
        self._goodbye: asyncio.TimerHandle | None = None
        self._mailbox = self._inbox() if self.credentials["imap_host"] else None
        own = {self._sender.address, self._sender.reply_to, self._sender.copy_to}
        self._reader = Reader(
            own=frozenset(address.lower() for address in own if address),
            domain=self._sender.domain,
            trusted=self.credentials["authserv_id"],
        )

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.default_capabilities, polling=self._mailbox is not None)

    async def send(self, message: Message, key: str) -> Outcome:
        look = from_thread()
        if message.media is None:
            return await self._in_thread(
                lambda seconds: self._send(message, key, look, seconds=seconds), self.timeouts.total
            )
        file = await opened(message.media, most_bytes=MOST_FILE_BYTES)
        if isinstance(file, Rejected | TryAgain):
            return file
        outcome = await self._in_thread(
            lambda seconds: self._send(message, key, look, file, seconds=seconds), self.timeouts.upload
        )
        file.close()  # also where no thread was free
        return outcome

    async def status(self) -> AccountState:
        outcome = await self._in_thread(
            lambda seconds: self._connections.try_out(seconds=seconds), self.timeouts.total
        )
        if isinstance(outcome, HeldBack):  # our own threads were busy: the server was not asked
            raise UnansweredError(Unreachable(reason=outcome.reason))
        self.why = "" if isinstance(outcome, Sent) else outcome.reason
        self.silent = isinstance(outcome, Unreachable)
        match outcome:
            case Sent() | RateLimited():
                return AccountState.WORKING
            case AccountBlocked():
                return AccountState.BLOCKED
            case Unreachable() | ServerError():
                return AccountState.UNREACHABLE
            case _:
                return AccountState.STOPPED

    async def poll(self, since: str) -> Polled:
        mailbox = self._mailbox
        if mailbox is None:
            return await super().poll(since)
        reading = _mailbox_threads.submit(self.owner, lambda: self._fetched(mailbox, since))
        try:
            messages, here = await asyncio.wrap_future(reading)
        except AddressNotAllowedError:
            raise UnansweredError(AccountBlocked(reason=AddressNotAllowedError.reason)) from None
        except imap.FAILURES as error:
            # Its text may hold the password, and is not used.
            raise UnansweredError(Unreachable(reason=imap.words_for(mailbox, error))) from None
        now = datetime.now(UTC)
        found = await asyncio.wrap_future(
            _mailbox_threads.submit(
                self.owner,
                lambda: [event_of(message, reader=self._reader, now=now) for message in messages],
            )
        )
        return Polled(
            events=tuple(each for each in found if not isinstance(each, PassedOver)),
            since=here,
            passed_over=tuple(each.value for each in found if isinstance(each, PassedOver)),
        )

    async def close(self) -> None:
        if self._goodbye is not None:
            self._goodbye.cancel()
        if self._connections.has_free():
            # Only briefly: the owner's threads may all wait for a server, and the caller has other work.
            closing = asyncio.wrap_future(_threads.submit(self.owner, self._connections.close))
            await asyncio.wait({closing}, timeout=CLOSE_SECONDS)

    def _send(
        self,
        message: Message,
        key: str,
        look: Callable[[], None],
        file: BinaryIO | None = None,
        *,
        seconds: float,
    ) -> Outcome:
        with file or io.BytesIO() as content:
            mail = self._sender.compose(message, key, content.read())
        if isinstance(mail, Rejected):
            return mail
        envelope = Envelope(
            sender=self._sender.address,
            recipients=mail.recipients(),
            content=written_out(mail),
        )
        outcome = self._connections.deliver(envelope, seconds=seconds, look=look)
        # Of a message in doubt the id is known too: a report that it came back names it.
        if isinstance(outcome, Sent | Unknown):
            return replace(outcome, provider_id=self._sender.message_id(message, key))
        return outcome

    async def _in_thread(self, work: Callable[[float], Outcome], seconds: float) -> Outcome:
        """Run `work` in a thread, with the seconds that are left when a thread is free.

        Where no thread gets free in time, nothing was sent, and nobody is at fault: HeldBack.
        """
        if self._goodbye is not None:
            self._goodbye.cancel()
        deadline = time.monotonic() + seconds
        future = _threads.submit(self.owner, lambda: self._worked(work, deadline))
        try:
            result = asyncio.wrap_future(future)
            done, _ = await asyncio.wait({result}, timeout=seconds * LONGEST_WAIT)
            if not done and future.cancel():
                return HeldBack(reason="too many e-mails of this owner were on their way")
            return await result
        except asyncio.CancelledError:
            future.cancel()  # work that nobody waits for any more must not leave later
            raise
        finally:
            loop = asyncio.get_running_loop()
            self._goodbye = loop.call_later(
                IDLE_SECONDS, _threads.submit, self.owner, self._connections.close
            )

    def _worked(self, work: Callable[[float], Outcome], deadline: float) -> Outcome:
        with on_behalf_of(self.owner):
            return work(max(deadline - time.monotonic(), 0.1))

    def _fetched(self, mailbox: imap.Mailbox, since: str) -> tuple[list[bytes], str]:
        with on_behalf_of(self.owner):
            return imap.fetch(mailbox, since)

    def _inbox(self) -> imap.Mailbox:
        return imap.Mailbox(
            host=_host(self.credentials["imap_host"], label="Mailbox server"),
            port=_port(self.credentials["imap_port"], label="Mailbox port"),
            encrypted=self.credentials["security"] != "none",
            user=self.credentials["user"],
            password=self.credentials["password"],
            seconds=self.timeouts.total,
            networks=self.networks,
        )

    def _server(self) -> Server:
        return Server(
            host=_host(self.credentials["host"], label="Mail server"),
            port=_port(self.credentials["port"], label="Port"),
            security=self.credentials["security"],
            user=self.credentials["user"],
            password=self.credentials["password"],
            our_name=self._sender.domain,
            connect_seconds=self.timeouts.connect,
            safe=self.safe,
            networks=self.networks,
        )


def _host(told: str, *, label: str) -> str:
    try:
        return host_name(told)
    except BadWebAddressError as error:
        raise CredentialsError(f"{label} is not the name of a server.") from error


def _port(told: str, *, label: str) -> int:
    if not told.isdecimal() or not 0 < int(told) < 65536:
        raise CredentialsError(f"{label} is not a number from 1 to 65535.")
    return int(told)
