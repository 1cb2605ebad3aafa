"""Asks questions of an account's service from ordinary code: pages, tasks, commands.

The engine has an event loop of its own (`engine/loop.py`); here a connection is opened for each question
and closed after it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
import structlog
from django.conf import settings

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from delivery import transports
from delivery.outcomes import Unreachable
from delivery.sessions import calls
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
from delivery.transports.networks.allowed import allowed_networks

T = TypeVar("T")
log = structlog.get_logger(__name__)

CONNECT_SECONDS = 3.0
LONGEST_ANSWER = 3  # requests that one question may take, each with its own timeout


class NoAnswerError(Exception):
    """Raised when the service could not be asked or did not answer; the text tells an operator what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An open line to one account's service; every `ask` uses the same connections."""

    transport: Transport
    runner: asyncio.Runner

    def ask(self, question: Callable[[Transport], Awaitable[T]]) -> T:
        """Return the answer; raise NoAnswerError where there is none."""

        async def put() -> T:
            return await question(self.transport)

        calls.release_connection()
        try:
            return self.runner.run(put())
        except UnansweredError as error:
            raise NoAnswerError(_failure(error)) from error
        except NotOfferedError as error:
            raise NoAnswerError(str(error)) from error

    def contacts(self, *, size: int) -> Iterator[list[Contact]]:
        """Yield the account's contacts, a page at a time; raise NoAnswerError."""
        contacts = self.transport.recipients()
        while True:
            page = self.ask(lambda _: _some(contacts, size))
            if page:
                yield page
            if len(page) < size:
                return


@contextmanager
def line_to(account: Account) -> Iterator[Line]:
    """Open a line to the account's service; raise NoAnswerError where its credentials cannot be used, and BusyError."""
    with calls.calling(), asyncio.Runner() as runner:
        session = runner.run(_opened())
        try:
            line = Line(transport=_made(account, session), runner=runner)
            try:
                yield line
            finally:
                calls.release_connection()  # closing may take as long as a question
                runner.run(line.transport.close())
        finally:
            runner.run(session.close())


def ask(account: Account, question: Callable[[Transport], Awaitable[T]]) -> T:
    """Ask one question on a separate line; raises NoAnswerError."""
    with line_to(account) as line:
        return line.ask(question)


def answers(
    accounts: Sequence[Account], question: Callable[[Account, Transport], Awaitable[T]]
) -> Iterator[tuple[Account, T | NoAnswerError]]:
    """Put a question to many services at once, and yield each answer, or why there is none, as it comes.

    Between two answers the caller may use the database; the other answers wait for that moment, then continue.
    """
    with asyncio.Runner() as runner:
        session = runner.run(_opened())
        waiting = {
            runner.get_loop().create_task(_answer(account, session, question)): account
            for account in accounts
        }
        try:
            while waiting:
                calls.release_connection()
                for task in runner.run(_first_done(waiting)):
                    yield waiting.pop(task), task.result()
        finally:
            runner.run(session.close())


async def _first_done(tasks: Iterable["asyncio.Task[T]"]) -> set["asyncio.Task[T]"]:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _answer(
    account: Account,
    session: aiohttp.ClientSession,
    question: Callable[[Account, Transport], Awaitable[T]],
) -> T | NoAnswerError:
    try:
        transport = _made(account, session)
        try:
            async with asyncio.timeout(LONGEST_ANSWER * settings.ANSWER_TIMEOUT_SECONDS):
                return await question(account, transport)
        finally:
            await transport.close()
    except (UnansweredError, NotOfferedError, NoAnswerError, TimeoutError) as error:
        return NoAnswerError(str(error))
    except Exception as error:  # a bug in one transport must not lose the answers of the others
        log.exception("question_failed", account=account.pk, transport=account.transport)
        return NoAnswerError(type(error).__name__)


def reader_of(account: Account) -> Transport:
    """Return the account's transport, to read webhooks and capabilities with; raise NoAnswerError."""
    return _made(account, None)


def capabilities_of(account: Account) -> Capabilities:
    """Return the account's capabilities; none where its credentials cannot be used."""
    try:
        return reader_of(account).capabilities
    except NoAnswerError:
        return Capabilities(actions=frozenset())


def _made(account: Account, session: aiohttp.ClientSession | None) -> Transport:
    try:
        networks = allowed_networks(settings.PRIVATE_NETWORKS)
        return transports.make(
            account.transport,
            account.credentials,
            session,
            timeouts=_timeouts(),
            networks=networks,
            owner=account.owner_id,
        )
    except CredentialsError as error:
        raise NoAnswerError(f"{error} Enter the credentials of {account} again.") from error
    except (UnreadableSecretError, TransportError) as error:
        raise NoAnswerError(str(error)) from error


def _failure(error: UnansweredError) -> str:
    """Return why a question failed, as a sentence."""
    unreached = error.silent or isinstance(error.outcome, Unreachable)
    what = "Could not reach the service" if unreached else "The request failed"
    return f"{what}: {str(error).rstrip('.')}."


def _timeouts() -> Timeouts:
    """Return shorter timeouts than a message has, since a person may be waiting for the page."""
    total = settings.ANSWER_TIMEOUT_SECONDS
    return Timeouts(connect=min(CONNECT_SECONDS, total / 2), total=total, upload=total)


async def _opened() -> aiohttp.ClientSession:
    return open_session(networks=allowed_networks(settings.PRIVATE_NETWORKS))


async def _some(contacts: AsyncIterator[Contact], size: int) -> list[Contact]:
    page: list[Contact] = []
    async for contact in contacts:
        page.append(contact)
        if len(page) == size:
            break
    return page
