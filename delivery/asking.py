"""Puts questions to an account's service from ordinary code: pages, tasks, commands.

The engine has an event loop of its own (`wire.py`); here each line is opened, asked and closed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
from django.conf import settings

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from delivery import transports
from delivery.reach import reach_of
from delivery.transports.base import (
    Capabilities,
    Contact,
    CredentialsError,
    NotOfferedError,
    Timeouts,
    Transport,
    TransportError,
    UnansweredError,
)
from delivery.transports.http.exchange import open_session

T = TypeVar("T")

# Somebody looks at a page meanwhile: shorter than a message's.
PATIENCE = Timeouts(connect=3, total=10, upload=10)


class NoAnswerError(Exception):
    """The service could not be asked, or did not answer; the text tells an operator what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An open line to one account's service; every `ask` uses the same connections."""

    transport: Transport
    runner: asyncio.Runner

    def ask(self, question: Callable[[Transport], Awaitable[T]]) -> T:
        """The answer; raises NoAnswerError."""

        async def put() -> T:
            return await question(self.transport)

        try:
            return self.runner.run(put())
        except UnansweredError as error:
            raise NoAnswerError(f"The service did not do it: {str(error).rstrip('.')}.") from error
        except NotOfferedError as error:
            raise NoAnswerError(str(error)) from error

    def contacts(self, *, size: int) -> Iterator[list[Contact]]:
        """Whom the account reaches, so many at a time; raises NoAnswerError."""
        contacts = self.transport.recipients()
        while True:
            page = self.ask(lambda _: _some(contacts, size))
            if page:
                yield page
            if len(page) < size:
                return


@contextmanager
def line_to(account: Account) -> Iterator[Line]:
    """A line to the account's service; raises NoAnswerError where its credentials cannot be used."""
    with asyncio.Runner() as runner:
        session = runner.run(_opened())
        try:
            line = Line(transport=_made(account, session), runner=runner)
            try:
                yield line
            finally:
                runner.run(line.transport.close())
        finally:
            runner.run(session.close())


def ask(account: Account, question: Callable[[Transport], Awaitable[T]]) -> T:
    """One question on a line of its own; raises NoAnswerError."""
    with line_to(account) as line:
        return line.ask(question)


def reader_of(account: Account) -> Transport:
    """The account's transport to read webhooks with, and to ask what it can do; raises NoAnswerError."""
    return _made(account, None)


def capabilities_of(account: Account) -> Capabilities:
    """What the account can do; nothing, where its credentials cannot be used."""
    try:
        return reader_of(account).capabilities
    except NoAnswerError:
        return Capabilities(actions=frozenset())


def _made(account: Account, session: aiohttp.ClientSession | None) -> Transport:
    try:
        reach = reach_of(settings.PRIVATE_NETWORKS)
        return transports.make(
            account.transport, account.credentials, session, timeouts=PATIENCE, reach=reach
        )
    except CredentialsError as error:
        raise NoAnswerError(f"{error} Enter the credentials of {account} again.") from error
    except (UnreadableSecretError, TransportError) as error:
        raise NoAnswerError(str(error)) from error


async def _opened() -> aiohttp.ClientSession:
    return open_session(reach=reach_of(settings.PRIVATE_NETWORKS))


async def _some(contacts: AsyncIterator[Contact], size: int) -> list[Contact]:
    page: list[Contact] = []
    async for contact in contacts:
        page.append(contact)
        if len(page) == size:
            break
    return page
