"""The contract between the engine and every transport, as tests that run over each kind.

To put a kind under contract: write a `Harness` (for HTTP a small faithful server: `gateway.Gateway`), and a
class `TestKind(TransportContract, ...)` with `service` set to it and one contract for each thing that the kind
offers: `KeyContract`, `HandleContract` or `InlineMediaContract`,
`MediaAddressContract`, `GroupContract`. A test holds the class to the
kind's capabilities, so that none is forgotten.
"""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import aiohttp
import pytest

from delivery.outcomes import (
    AccountBlocked,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.transports import kinds
from delivery.transports.base import (
    AccountState,
    Contact,
    CredentialsError,
    FileAddress,
    Message,
    NotOfferedError,
    Transport,
    UnansweredError,
    Uploaded,
    WebhookRefusedError,
    WebhookRequest,
)
from delivery.transports.http.exchange import open_session
from delivery.transports.leaving import HeldBackError, looking_with
from tests.delivery.transports.harness import (
    HASTY,
    MEANS,
    PATIENT,
    SECRET,
    TOKEN,
    WORDS,
    Harness,
    Hearing,
    Scenario,
    Shelf,
    photo,
    picture,
    port_that_never_answers,
    port_without_server,
    shelf,
)

DELIVERS = {Scenario.BREAKS_AFTER, Scenario.HANGS, Scenario.CUTS, Scenario.GARBAGE}


class Stage:
    """The service of a contract, and the kind's transports to it."""

    service: ClassVar[type[Harness]]

    def tables(self) -> dict[str, Sequence[object]]:
        """Rows, by the name under which a test asks for one."""
        return {"scenario": sorted(self.service.scenarios)}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name, rows in self.tables().items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, rows, ids=str)

    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        async with self.service() as harness:
            yield harness

    @pytest.fixture
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        async with open_session() as session:
            yield session

    @pytest.fixture
    async def transport(self, harness: Harness, session: aiohttp.ClientSession) -> AsyncIterator[Transport]:
        transport = harness.kind(harness.credentials(), session, timeouts=PATIENT)
        yield transport
        await transport.close()

    @pytest.fixture
    async def hasty(self, harness: Harness, session: aiohttp.ClientSession) -> AsyncIterator[Transport]:
        transport = harness.kind(harness.credentials(), session, timeouts=HASTY)
        yield transport
        await transport.close()

    @pytest.fixture
    def text(self, harness: Harness) -> Message:
        return Message(address=harness.address, kind="text", text=WORDS)


class TransportContract(Stage):
    """Every kind passes this."""

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
        "words", ["Grüße 👋🏽 مرحبا 你好", 'a "b" \\ </script> & %7B {{ x }}', "two\n\nlines"]
    )
    async def test_any_characters_arrive_unchanged(
        self, transport: Transport, harness: Harness, text: Message, words: str
    ) -> None:
        assert isinstance(await transport.send(replace(text, text=words), "k"), Sent)
        assert [received.text for received in harness.received()] == [words]

    @pytest.mark.parametrize("words", ["\ud83d cut", "\x00\x1b\x7f"])
    async def test_characters_that_are_none_break_nothing(
        self, transport: Transport, text: Message, words: str
    ) -> None:
        assert isinstance(await transport.send(replace(text, text=words), "k"), Sent | Rejected)

    async def test_a_very_long_text_arrives_whole_or_not_at_all(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        outcome = await transport.send(replace(text, text="é" * 60_000), "k")

        assert isinstance(outcome, Sent | Rejected)
        whole = [60_000] if isinstance(outcome, Sent) else []
        assert [received.chars for received in harness.received()] == whole

    async def test_parts_arrive_in_their_order(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        words = [f"part {number}" for number in range(5)]
        for number, each in enumerate(words):
            assert isinstance(await transport.send(replace(text, text=each), f"k{number}"), Sent)
        assert [received.text for received in harness.received()] == words

    async def test_the_key_travels_with_the_message_where_the_service_takes_one(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        await transport.send(text, "run-1:target-1:0")
        key = "run-1:target-1:0" if harness.takes_key else ""
        assert [received.key for received in harness.received()] == [key]

    async def test_a_message_sent_again_is_doubled_unless_the_transport_says_otherwise(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        outcomes = [await transport.send(text, "same") for _ in range(3)]

        assert all(isinstance(outcome, Sent) for outcome in outcomes)
        assert len(harness.received()) == (1 if transport.capabilities.idempotent else 3)

    # The last look

    async def test_the_last_look_comes_before_each_message_and_lets_it_leave(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        arrived = []

        async def look() -> None:
            arrived.append(len(harness.received()))

        with looking_with(look):
            assert isinstance(await transport.send(text, "k1"), Sent)
            assert isinstance(await transport.send(text, "k2"), Sent)
        assert arrived[0] == 0
        assert arrived[-1] == 1

    async def test_what_the_last_look_holds_back_does_not_leave_and_the_next_one_does(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        async def look() -> None:
            raise HeldBackError("the window closes")

        with looking_with(look), pytest.raises(HeldBackError):
            await transport.send(text, "k")
        assert harness.received() == []
        assert isinstance(await transport.send(text, "k"), Sent)
        assert len(harness.received()) == 1

    # What an answer means

    async def test_whatever_a_service_does_has_its_outcome(
        self, transport: Transport, hasty: Transport, harness: Harness, text: Message, scenario: Scenario
    ) -> None:
        harness.enter(scenario)
        if scenario is Scenario.RATE_LIMITS:
            assert isinstance(await transport.send(text, "first"), Sent)
        if scenario is Scenario.REJECTS:
            text = replace(text, address=harness.refused_address)
        outcome = await (hasty if scenario is Scenario.HANGS else transport).send(text, "k")

        assert type(outcome) is {**MEANS, **harness.means}[scenario]
        assert not isinstance(outcome, Sent)
        assert outcome.reason
        if isinstance(outcome, Rejected):
            assert outcome.code
        if isinstance(outcome, RateLimited) and harness.longest_wait is None:
            assert outcome.after is None
        elif isinstance(outcome, RateLimited):
            assert outcome.after is not None
            assert 0 < outcome.after <= (harness.longest_wait or 0)
        accepted = scenario in DELIVERS or scenario is Scenario.RATE_LIMITS
        assert len(harness.received()) == int(accepted)

    async def test_a_blocked_account_says_so(self, transport: Transport, harness: Harness) -> None:
        harness.enter(Scenario.BLOCKED)
        assert await transport.status() is AccountState.BLOCKED

    async def test_a_wrong_secret_stops_the_account(
        self, harness: Harness, session: aiohttp.ClientSession, transport: Transport, text: Message
    ) -> None:
        await transport.send(text, "k")
        stranger = harness.kind(harness.wrong_credentials(), session)
        assert isinstance(await stranger.send(text, "k2"), AccountBlocked)
        assert len(harness.received()) == 1

    @pytest.mark.parametrize("nobody", [port_that_never_answers, port_without_server])
    async def test_without_a_connection_nothing_left(
        self, harness: Harness, session: aiohttp.ClientSession, text: Message, nobody: type
    ) -> None:
        with nobody() as port:
            transport = harness.kind(harness.credentials_on(port), session, timeouts=HASTY)
            outcome = await transport.send(text, "k")
            assert isinstance(outcome, Unreachable)
            assert outcome.reason.endswith(f":{port}")
            assert await transport.status() is AccountState.UNREACHABLE

    async def test_a_send_that_is_given_up_leaves_the_session_usable(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        harness.enter(Scenario.HANGS)
        sending = asyncio.create_task(transport.send(text, "k"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(sending), 0.3)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert await transport.status() is AccountState.WORKING

    async def test_the_name_of_a_file_starts_no_header(self, transport: Transport, harness: Harness) -> None:
        odd = replace(photo(), filename="a\r\nX-Evil: 1\u2028\x00\ud83d.png")
        assert odd.filename == "aX-Evil: 1.png"
        handle = await transport.upload(odd) if transport.capabilities.media_handles else None
        message = picture(
            harness.address, odd, handle=handle.handle if isinstance(handle, Uploaded) else None
        )
        assert isinstance(await transport.send(message, "k"), Sent)

    # Questions

    async def test_a_working_account_says_so(self, transport: Transport) -> None:
        assert await transport.status() is AccountState.WORKING

    async def test_what_is_not_offered_is_refused_as_a_mistake(
        self, harness: Harness, transport: Transport
    ) -> None:
        if not transport.capabilities.pairing:
            with pytest.raises(NotOfferedError):
                await transport.pairing()
            with pytest.raises(NotOfferedError):
                await transport.disconnect()
        if not transport.capabilities.pairing_code:
            with pytest.raises(NotOfferedError):
                await transport.pairing_code("+4915112345678")
        if not transport.capabilities.hidden_numbers:
            with pytest.raises(NotOfferedError):
                await transport.number_behind("77@lid")
        if not transport.capabilities.number_check:
            with pytest.raises(NotOfferedError):
                await transport.check_number(harness.address)
        if not transport.capabilities.media_handles:
            with pytest.raises(NotOfferedError):
                await transport.upload(photo())
        if not transport.capabilities.groups:
            with pytest.raises(NotOfferedError):
                transport.recipients()

    def test_an_unsigned_webhook_is_refused(self, harness: Harness) -> None:
        """And it takes no session to do so."""
        transport = harness.kind(harness.credentials(), None)
        request = WebhookRequest(headers={}, body=b"{}", secret=SECRET, received_at=datetime.now(UTC))
        refusal = WebhookRefusedError if transport.capabilities.webhooks else NotOfferedError
        with pytest.raises(refusal):
            transport.parse_webhook(request)

    def test_its_contracts_are_those_of_its_capabilities(self, transport: Transport) -> None:
        offered = transport.capabilities
        assert isinstance(self, KeyContract) == offered.idempotent
        assert isinstance(self, HandleContract) == offered.media_handles
        assert isinstance(self, InlineMediaContract) != offered.media_handles
        assert isinstance(self, MediaAddressContract) == offered.media_urls
        assert isinstance(self, GroupContract) == offered.groups

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
            elsewhere = harness.kind(harness.credentials_on(port), session)
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


class KeyContract(Stage):
    """The contract of a kind whose service delivers the same key once."""

    async def test_the_same_key_at_the_same_moment_delivers_once_too(
        self, transport: Transport, harness: Harness, text: Message
    ) -> None:
        await asyncio.gather(*(transport.send(text, "same") for _ in range(5)))
        assert len(harness.received()) == 1

    async def test_a_message_in_doubt_may_be_sent_again(
        self, transport: Transport, hasty: Transport, harness: Harness, text: Message
    ) -> None:
        harness.enter(Scenario.HANGS)
        await hasty.send(text, "same")
        await hasty.send(text, "same")
        assert len(harness.received()) == 1


class HandleContract(Stage):
    """The contract of a kind whose service keeps a file, to be sent many times."""

    async def test_a_file_is_uploaded_once_and_sent_many_times(
        self, transport: Transport, harness: Harness
    ) -> None:
        uploaded = await transport.upload(photo())
        assert isinstance(uploaded, Uploaded)
        message = picture(harness.address, handle=uploaded.handle)
        for number in range(3):
            assert isinstance(await transport.send(message, f"k{number}"), Sent)

        assert [received.media for received in harness.received()] == [uploaded.handle] * 3
        assert [received.text for received in harness.received()] == [message.text] * 3
        assert harness.uploads() == 1

    async def test_a_file_goes_up_from_the_disk(
        self, transport: Transport, harness: Harness, tmp_path: Path
    ) -> None:
        stored = tmp_path / "stored"
        stored.write_bytes(bytes(3 * 2**20))
        assert isinstance(await transport.upload(replace(photo(), open=lambda: stored.open("rb"))), Uploaded)
        assert harness.uploads() == 1

    async def test_a_handle_that_the_service_never_gave_is_refused(
        self, transport: Transport, harness: Harness
    ) -> None:
        message = picture(harness.address, handle="no-such-handle")
        assert isinstance(await transport.send(message, "k"), Rejected)

    async def test_media_without_a_handle_is_a_mistake_of_the_caller(
        self, transport: Transport, harness: Harness
    ) -> None:
        with pytest.raises(ValueError, match="Upload"):
            await transport.send(picture(harness.address), "k")

    async def test_an_upload_that_may_have_arrived_can_be_made_again(
        self, hasty: Transport, harness: Harness
    ) -> None:
        harness.enter(Scenario.HANGS)
        assert isinstance(await hasty.upload(photo()), ServerError)

    async def test_a_failed_upload_is_an_outcome(self, transport: Transport, harness: Harness) -> None:
        harness.enter(Scenario.BLOCKED)
        assert isinstance(await transport.upload(photo()), AccountBlocked)

    async def test_a_file_that_is_gone_is_refused_for_good(self, transport: Transport) -> None:
        assert isinstance(await transport.upload(replace(photo(), open=gone)), Rejected)


class InlineMediaContract(Stage):
    """The contract of a kind whose files travel with each message."""

    async def test_a_file_arrives_whole_with_its_name_and_caption(
        self, transport: Transport, harness: Harness
    ) -> None:
        large = photo(bytes(range(256)) * 4096 + b"end")
        message = picture(harness.address, large)
        assert isinstance(await transport.send(message, "k"), Sent)

        [received] = harness.received()
        assert (received.media, received.text) == (large.sha256, message.text)
        assert received.filename == large.filename

    async def test_a_file_that_is_gone_is_refused_for_good(
        self, transport: Transport, harness: Harness
    ) -> None:
        message = picture(harness.address, replace(photo(), open=gone))
        assert isinstance(await transport.send(message, "k"), Rejected)
        assert harness.received() == []

    async def test_a_file_that_cannot_be_read_now_is_tried_again(
        self, transport: Transport, harness: Harness
    ) -> None:
        def unreadable() -> io.BytesIO:
            raise PermissionError

        message = picture(harness.address, replace(photo(), open=unreadable))
        assert isinstance(await transport.send(message, "k"), TryAgain)
        assert harness.received() == []


class MediaAddressContract(Stage):
    """The contract of a kind whose service fetches files from their addresses."""

    @pytest.fixture
    async def shelf(self) -> AsyncIterator[Shelf]:
        async with shelf(LARGE) as served:
            yield served

    async def test_a_file_is_fetched_from_its_address_for_each_message(
        self, transport: Transport, harness: Harness, shelf: Shelf
    ) -> None:
        message, hearing = at_its_address(harness, shelf)
        for number in range(2):
            assert isinstance(await transport.send(message, f"k{number}"), Sent)

        assert [(each.media, each.text, each.filename) for each in harness.received()] == [
            (LARGE.sha256, message.text, LARGE.filename)
        ] * 2
        assert shelf.fetched == [LARGE.sha256] * 2
        assert hearing.verdicts == ["worked"] * 2

    async def test_a_file_that_cannot_be_fetched_goes_inside_the_message_once(
        self, transport: Transport, harness: Harness, shelf: Shelf
    ) -> None:
        shelf.gone = True
        message, hearing = at_its_address(harness, shelf)
        looks = 0

        async def look() -> None:
            nonlocal looks
            looks += 1

        with looking_with(look):
            assert isinstance(await transport.send(message, "k"), Sent)
        assert [each.media for each in harness.received()] == [LARGE.sha256]
        assert hearing.verdicts == ["failed"]
        assert looks >= 2  # also before the second request

    async def test_what_the_last_look_holds_back_after_a_failed_fetch_does_not_leave(
        self, transport: Transport, harness: Harness, shelf: Shelf
    ) -> None:
        shelf.gone = True
        message, _ = at_its_address(harness, shelf)

        async def look() -> None:
            if shelf.fetched:
                raise HeldBackError("the window closes")

        with looking_with(look), pytest.raises(HeldBackError):
            await transport.send(message, "k")
        assert harness.received() == []

    async def test_an_address_that_leads_nowhere_sends_the_file_inside(
        self, transport: Transport, harness: Harness
    ) -> None:
        hearing = Hearing()
        with port_without_server() as port:
            url = f"http://127.0.0.1:{port}/files/{TOKEN}/file.png"
            message = picture(harness.address, LARGE, at=FileAddress(url=url, fetching=hearing))
            assert isinstance(await transport.send(message, "k"), Sent)
        assert [each.media for each in harness.received()] == [LARGE.sha256]
        assert hearing.verdicts == ["failed"]

    @pytest.mark.parametrize("doubt", sorted(DELIVERS))
    async def test_a_message_in_doubt_is_not_sent_a_second_time(
        self, hasty: Transport, harness: Harness, shelf: Shelf, doubt: Scenario
    ) -> None:
        harness.enter(doubt)
        message, hearing = at_its_address(harness, shelf)
        assert isinstance(await hasty.send(message, "k"), Unknown)
        assert len(harness.received()) == 1
        assert hearing.verdicts == ["in doubt"]

    async def test_the_address_is_in_no_outcome_no_log_and_no_repr(
        self, transport: Transport, harness: Harness, shelf: Shelf, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="delivery")
        shelf.gone = True
        message, hearing = at_its_address(harness, shelf)
        told = [message, await transport.send(message, "k"), hearing.heard]
        assert TOKEN not in " ".join(map(repr, told)) + caplog.text


LARGE = photo(bytes(range(256)) * 4096 + b"end")


def at_its_address(harness: Harness, served: Shelf) -> tuple[Message, Hearing]:
    hearing = Hearing()
    return picture(harness.address, LARGE, at=FileAddress(url=served.url(LARGE), fetching=hearing)), hearing


class GroupContract(Stage):
    """The contract of a kind that can list whom the account reaches."""

    async def test_recipients_have_an_address_and_a_name(self, transport: Transport) -> None:
        contacts = [contact async for contact in transport.recipients()]
        assert contacts
        assert all(isinstance(contact, Contact) and contact.address and contact.name for contact in contacts)
        assert len({contact.address for contact in contacts}) == len(contacts)

    async def test_a_question_that_fails_raises_with_the_outcome(
        self, harness: Harness, session: aiohttp.ClientSession
    ) -> None:
        with port_without_server() as port:
            elsewhere = harness.kind(harness.credentials_on(port), session)
            with pytest.raises(UnansweredError) as raised:
                [contact async for contact in elsewhere.recipients()]
        assert isinstance(raised.value.outcome, Unreachable)


def gone() -> io.BytesIO:
    raise FileNotFoundError
