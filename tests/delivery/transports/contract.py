"""What every transport owes the engine, as tests that run over each kind.

To put a kind under contract: write a `Harness` that starts its real service and can make it misbehave, and
a class `TestKind(TransportContract)` whose fixture `harness` gives it. A scenario that a service cannot be
brought into is left out of the harness's `scenarios`.
"""

import asyncio
import io
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from pathlib import Path
from typing import ClassVar

import aiohttp
import pytest

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    RateLimited,
    Rejected,
    Sent,
    TryAgain,
    Unknown,
)
from delivery.transports import kinds
from delivery.transports.base import (
    AccountState,
    Contact,
    CredentialsError,
    Media,
    MediaRef,
    Message,
    NotOfferedError,
    Timeouts,
    Transport,
    UnansweredError,
    Uploaded,
)
from delivery.transports.http import open_session
from delivery.transports.http_transport import HttpTransport

SECRET = "wholly-secret-4711"
PATIENT = Timeouts(connect=5, total=20, upload=20)
HASTY = Timeouts(connect=0.4, total=0.8, upload=0.8)


class Scenario(StrEnum):
    """What a service can be made to do with every message."""

    RATE_LIMITS = auto()  # after one accepted message
    NOT_CONNECTED = auto()
    BLOCKED = auto()
    REJECTS = auto()  # the harness's `refused_address`
    REFUSES_FOR_NOW = auto()  # fails, and says that nothing was accepted
    BREAKS_AFTER = auto()  # accepts, then answers 500
    HANGS = auto()
    CUTS = auto()
    GARBAGE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One message as the service saw it arrive."""

    address: str
    key: str
    text: str  # at least the first 100 characters
    chars: int
    media: str


class Harness(ABC):
    """A real service, and how to look behind it."""

    kind: ClassVar[type[HttpTransport]]
    scenarios: ClassVar[frozenset[Scenario]] = frozenset(Scenario)
    address: ClassVar[str]
    refused_address: ClassVar[str] = ""

    @abstractmethod
    def credentials(self) -> dict[str, str]:
        """Those of one account, the same throughout a test; each secret is or contains SECRET."""

    @abstractmethod
    def credentials_at(self, base_url: str) -> dict[str, str]:
        """The same account on a server that lives somewhere else."""

    @abstractmethod
    def wrong_credentials(self) -> dict[str, str]:
        """The same account with a secret that is not its own."""

    @abstractmethod
    def enter(self, scenario: Scenario) -> None:
        """From the next message on."""

    @abstractmethod
    def received(self) -> list[Received]:
        """Everything that reached a recipient."""

    @abstractmethod
    def uploads(self) -> int:
        """How many files were accepted."""


@contextmanager
def port_that_never_answers() -> Iterator[int]:
    """A port whose queue of connections is full: a connection attempt gets neither a yes nor a no."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@contextmanager
def port_without_server() -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def photo(content: bytes = b"\x89PNG not really") -> Media:
    return Media(
        sha256="ab" * 32, filename="Fête été.png", content_type="image/png", open=lambda: io.BytesIO(content)
    )


class TransportContract:
    """Every kind passes this."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError

    @pytest.fixture
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        async with open_session() as session:
            yield session

    @pytest.fixture
    def transport(self, harness: Harness, session: aiohttp.ClientSession) -> HttpTransport:
        return harness.kind(harness.credentials(), session, timeouts=PATIENT)

    @pytest.fixture
    def hasty(self, harness: Harness, session: aiohttp.ClientSession) -> HttpTransport:
        return harness.kind(harness.credentials(), session, timeouts=HASTY)

    @pytest.fixture
    def text(self, harness: Harness) -> Message:
        return Message(address=harness.address, kind="text", text="The bus leaves at nine.")

    # What arrives

    async def test_a_text_arrives_as_it_was_written(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        outcome = await transport.send(text, "run-1:target-1:0")

        assert isinstance(outcome, Sent)
        assert outcome.provider_id
        [received] = harness.received()
        assert (received.address, received.text) == (text.address, text.text)

    @pytest.mark.parametrize(
        "words", ["Grüße 👋🏽 مرحبا 你好", 'a "b" \\ </script> \x00\x1b', "two\n\nlines\t"]
    )
    async def test_any_characters_arrive_unchanged(
        self, transport: Transport, harness: Harness, text: Message, words: str
    ) -> None:
        assert isinstance(await transport.send(replace(text, text=words), "k"), Sent)
        assert [received.text for received in harness.received()] == [words]

    async def test_half_a_character_breaks_nothing(self, transport: Transport, text: Message) -> None:
        assert isinstance(await transport.send(replace(text, text="\ud83d cut"), "k"), Sent | Rejected)

    async def test_a_very_long_text_arrives_whole(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        outcome = await transport.send(replace(text, text="é" * 60_000), "k")

        if isinstance(outcome, Sent):
            assert [received.chars for received in harness.received()] == [60_000]
        else:
            assert isinstance(outcome, Rejected)
            assert harness.received() == []

    async def test_the_key_travels_with_the_message(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        await transport.send(text, "run-1:target-1:0")
        assert [received.key for received in harness.received()] == ["run-1:target-1:0"]

    async def test_the_same_key_delivers_once_where_the_transport_says_so(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        outcomes = [await transport.send(text, "same") for _ in range(3)]

        assert all(isinstance(outcome, Sent) for outcome in outcomes)
        assert len(harness.received()) == (1 if transport.capabilities.idempotent else 3)

    async def test_the_same_key_at_the_same_moment_delivers_once_too(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        if not transport.capabilities.idempotent:
            pytest.skip("promises nothing")
        await asyncio.gather(*(transport.send(text, "same") for _ in range(5)))
        assert len(harness.received()) == 1

    # Media

    async def test_a_file_is_uploaded_once_and_sent_many_times(
        self, transport: Transport, harness: Harness
    ) -> None:
        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        uploaded = await transport.upload(photo())
        assert isinstance(uploaded, Uploaded)
        for number in range(3):
            assert isinstance(
                await transport.send(self.picture(harness, uploaded.handle), f"k{number}"), Sent
            )

        assert [received.media for received in harness.received()] == [uploaded.handle] * 3
        assert [received.text for received in harness.received()] == ["Look!"] * 3
        assert harness.uploads() == 1

    async def test_a_file_goes_up_from_the_disk(
        self, transport: Transport, harness: Harness, tmp_path: Path
    ) -> None:
        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        stored = tmp_path / "stored"
        stored.write_bytes(bytes(3 * 2**20))
        assert isinstance(await transport.upload(replace(photo(), open=lambda: stored.open("rb"))), Uploaded)
        assert harness.uploads() == 1

    async def test_a_handle_that_the_service_never_gave_is_refused(
        self, transport: Transport, harness: Harness
    ) -> None:
        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        assert isinstance(await transport.send(self.picture(harness, "no-such-handle"), "k"), Rejected)

    async def test_media_without_a_handle_is_a_mistake_of_the_caller(
        self, transport: Transport, harness: Harness
    ) -> None:
        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        with pytest.raises(ValueError, match="Upload"):
            await transport.send(self.picture(harness, None), "k")

    async def test_an_upload_that_may_have_arrived_can_be_made_again(
        self, hasty: Transport, harness: Harness
    ) -> None:
        self.enter(harness, Scenario.HANGS)
        if not hasty.capabilities.media_handles:
            pytest.skip("has no handles")
        assert isinstance(await hasty.upload(photo()), TryAgain)

    async def test_a_failed_upload_is_an_outcome(self, transport: Transport, harness: Harness) -> None:
        self.enter(harness, Scenario.BLOCKED)
        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        assert isinstance(await transport.upload(photo()), AccountBlocked)

    async def test_a_file_that_is_gone_is_refused_for_good(self, transport: Transport) -> None:
        def gone() -> io.BytesIO:
            raise FileNotFoundError

        if not transport.capabilities.media_handles:
            pytest.skip("has no handles")
        assert isinstance(await transport.upload(replace(photo(), open=gone)), Rejected)

    # What else an answer can mean

    async def test_rate_limited_says_how_long_to_wait(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        self.enter(harness, Scenario.RATE_LIMITS)
        await transport.send(text, "first")
        outcome = await transport.send(text, "second")

        assert isinstance(outcome, RateLimited)
        assert outcome.after is None or 0 < outcome.after <= 60

    async def test_not_connected(self, transport: Transport, harness: Harness, text: Message) -> None:
        self.enter(harness, Scenario.NOT_CONNECTED)
        assert isinstance(await transport.send(text, "k"), NotConnected)
        assert harness.received() == []

    async def test_a_blocked_account(self, transport: Transport, harness: Harness, text: Message) -> None:
        self.enter(harness, Scenario.BLOCKED)
        assert isinstance(await transport.send(text, "k"), AccountBlocked)
        assert await transport.status() is AccountState.BLOCKED

    async def test_a_wrong_secret_stops_the_account(
        self, harness: Harness, session: aiohttp.ClientSession, transport: Transport, text: Message
    ) -> None:
        await transport.send(text, "k")
        stranger = harness.kind(harness.wrong_credentials(), session)
        assert isinstance(await stranger.send(text, "k2"), AccountBlocked)
        assert len(harness.received()) == 1

    async def test_a_refused_recipient_has_a_reason_and_a_code(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        self.enter(harness, Scenario.REJECTS)
        outcome = await transport.send(replace(text, address=harness.refused_address), "k")

        assert isinstance(outcome, Rejected)
        assert outcome.reason
        assert outcome.code

    async def test_a_service_that_says_it_accepted_nothing_is_believed(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        self.enter(harness, Scenario.REFUSES_FOR_NOW)
        assert isinstance(await transport.send(text, "k"), TryAgain)
        assert harness.received() == []

    # Doubt

    @pytest.mark.parametrize("scenario", [Scenario.BREAKS_AFTER, Scenario.CUTS, Scenario.GARBAGE])
    async def test_an_answer_that_leaves_doubt_is_unknown(
        self, transport: Transport, harness: Harness, text: Message, scenario: Scenario
    ) -> None:
        self.enter(harness, scenario)
        assert isinstance(await transport.send(text, "k"), Unknown)
        assert len(harness.received()) == 1

    async def test_a_service_that_never_answers_leaves_doubt(
        self, hasty: Transport, harness: Harness, text: Message
    ) -> None:
        self.enter(harness, Scenario.HANGS)
        assert isinstance(await hasty.send(text, "k"), Unknown)

    @pytest.mark.parametrize("nobody", [port_that_never_answers, port_without_server])
    async def test_without_a_connection_nothing_left(
        self, harness: Harness, session: aiohttp.ClientSession, text: Message, nobody: type
    ) -> None:
        with nobody() as port:
            credentials = harness.credentials_at(f"http://127.0.0.1:{port}")
            transport = harness.kind(credentials, session, timeouts=HASTY)
            assert isinstance(await transport.send(text, "k"), TryAgain)
            assert await transport.status() is AccountState.UNREACHABLE

    async def test_a_send_that_is_given_up_leaves_the_session_usable(
        self, transport: Transport, harness: Harness, session: aiohttp.ClientSession, text: Message
    ) -> None:
        self.enter(harness, Scenario.HANGS)
        sending = asyncio.create_task(transport.send(text, "k"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(sending), 0.3)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert await transport.status() is AccountState.WORKING

    # Questions

    async def test_a_working_account_says_so(self, transport: Transport) -> None:
        assert await transport.status() is AccountState.WORKING

    async def test_recipients_have_an_address_and_a_name(self, transport: Transport) -> None:
        if not transport.capabilities.groups:
            with pytest.raises(NotOfferedError):
                transport.recipients()
            return
        contacts = [contact async for contact in transport.recipients()]
        assert contacts
        assert all(isinstance(contact, Contact) and contact.address and contact.name for contact in contacts)
        assert len({contact.address for contact in contacts}) == len(contacts)

    async def test_a_question_that_fails_raises_with_the_outcome(
        self, harness: Harness, transport: Transport, session: aiohttp.ClientSession
    ) -> None:
        if not transport.capabilities.groups:
            pytest.skip("answers no questions")
        with port_without_server() as port:
            elsewhere = harness.kind(harness.credentials_at(f"http://127.0.0.1:{port}"), session)
            with pytest.raises(UnansweredError) as raised:
                [contact async for contact in elsewhere.recipients()]
        assert isinstance(raised.value.outcome, TryAgain)

    async def test_what_is_not_offered_is_refused_as_a_mistake(self, transport: Transport) -> None:
        if not transport.capabilities.pairing:
            with pytest.raises(NotOfferedError):
                await transport.pairing()
        if not transport.capabilities.media_handles:
            with pytest.raises(NotOfferedError):
                await transport.upload(photo())

    # Manners

    async def test_secrets_are_in_no_outcome_no_log_and_no_repr(
        self,
        harness: Harness,
        session: aiohttp.ClientSession,
        transport: Transport,
        text: Message,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        told: list[object] = [transport, await transport.send(text, "k")]
        told.append(await harness.kind(harness.wrong_credentials(), session).send(text, "k"))
        with port_without_server() as port:
            elsewhere = harness.kind(harness.credentials_at(f"http://127.0.0.1:{port}"), session)
            told.append(await elsewhere.send(text, "k"))
        # A service that repeats what it was told, among it the secret.
        told.append(await transport.send(replace(text, address=f"{SECRET}@nowhere"), "k"))
        told.append(await transport.send(replace(text, address=SECRET * 40), "k"))

        assert SECRET not in " ".join(map(repr, told)) + caplog.text

    def test_a_missing_credential_is_named(self, harness: Harness, session: aiohttp.ClientSession) -> None:
        for field in harness.kind.credential_fields:
            if field.required and not field.default:
                with pytest.raises(CredentialsError, match=field.label):
                    harness.kind({**harness.credentials(), field.name: " "}, session)

    def test_a_credential_that_would_break_a_header_is_named_and_not_shown(
        self, harness: Harness, session: aiohttp.ClientSession
    ) -> None:
        for field in harness.kind.credential_fields:
            with pytest.raises(CredentialsError, match=field.label) as raised:
                harness.kind({**harness.credentials(), field.name: f"{SECRET}\r\nX: y"}, session)
            assert SECRET not in str(raised.value)

    def test_it_can_be_chosen_by_its_name(self, harness: Harness) -> None:
        assert kinds()[harness.kind.kind] is harness.kind
        assert harness.kind.label

    # Steps

    def enter(self, harness: Harness, scenario: Scenario) -> None:
        if scenario not in harness.scenarios:
            pytest.skip(f"cannot be brought to: {scenario}")
        harness.enter(scenario)

    def picture(self, harness: Harness, handle: str | None) -> Message:
        media = photo()
        reference = MediaRef(
            sha256=media.sha256,
            filename=media.filename,
            content_type=media.content_type,
            open=media.open,
            handle=handle,
        )
        return Message(address=harness.address, kind="media", text="Look!", media=reference)
