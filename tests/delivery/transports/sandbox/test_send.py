"""The sandbox transport against a real sandbox, in both of its modes."""

import asyncio
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from delivery.outcomes import NotConnected, Rejected, Sent
from delivery.transports.base import AccountState, CredentialsError, Message, UnansweredError
from delivery.transports.sandbox.send import SandboxTransport
from sandbox import witness
from sandbox.process import SandboxProcess
from tests.delivery.transports.contract import (
    LARGE,
    GroupContract,
    HandleContract,
    InlineMediaContract,
    KeyContract,
    MediaAddressContract,
    TransportContract,
    at_its_address,
)
from tests.delivery.transports.harness import SECRET, Harness, Received, Scenario, Shelf

BEHAVIOURS: dict[Scenario, dict[str, Any]] = {
    Scenario.RATE_LIMITS: {"rate_limit": 1},
    Scenario.NOT_CONNECTED: {"not_connected": True},
    Scenario.BLOCKED: {"state": "BANNED"},
    Scenario.REJECTS: {"reject": ["refused@g.us"]},
    Scenario.REFUSES_FOR_NOW: {"error_rate": 1},
    Scenario.BREAKS_AFTER: {"error_rate_after": 1},
    Scenario.HANGS: {"hang": 1},
    Scenario.CUTS: {"cut": 1},
    Scenario.GARBAGE: {"garbage": 1},
}


class SandboxHarness(Harness):
    kind = SandboxTransport
    address = "120363000000000001@g.us"
    refused_address = "refused@g.us"
    takes_key = True
    longest_wait = 60.0

    def __init__(self, process: SandboxProcess, *, idempotent: str, files: str = "uploaded") -> None:
        self.process = process
        self._files = files
        self.account = f"account {uuid4().hex[:8]}/ü"
        self._idempotent = idempotent

    def credentials(self) -> dict[str, str]:
        return self.credentials_at(self.process.url)

    def credentials_on(self, port: int) -> dict[str, str]:
        return self.credentials_at(f"http://127.0.0.1:{port}")

    def credentials_at(self, base_url: str) -> dict[str, str]:
        return {
            "base_url": base_url,
            "account": self.account,
            "token": SECRET,
            "idempotent": self._idempotent,
            "files": self._files,
        }

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "token": f"{SECRET}-but-another"}

    def enter(self, scenario: Scenario) -> None:
        self.behave(**BEHAVIOURS[scenario])

    def behave(self, **wishes: Any) -> None:
        self.process.behave(self.account, **wishes)

    def received(self) -> list[Received]:
        return [
            Received(
                address=line["to"],
                key=line["key"],
                text=line["text"],
                chars=line["chars"],
                media=line["media"],
                filename=line["file"],
            )
            for line in witness.deliveries(self.process.log, self.account)
        ]

    def uploads(self) -> int:
        return len(witness.uploads(self.process.log, self.account))


class TestSandbox(TransportContract, KeyContract, HandleContract, GroupContract):
    service = SandboxHarness

    @pytest.fixture
    def harness(self, sandbox: SandboxProcess) -> SandboxHarness:
        return SandboxHarness(sandbox, idempotent="yes")

    async def test_an_unknown_recipient_is_refused(
        self, transport: SandboxTransport, harness: SandboxHarness
    ) -> None:
        harness.behave(unknown=["lost@g.us"])
        outcome = await transport.send(Message(address="lost@g.us", kind="text", text="Hello?"), "k")
        assert outcome == Rejected(
            reason="the gateway answered 404: There is no such recipient.", code="unknown_recipient"
        )

    async def test_groups_come_page_by_page(
        self, transport: SandboxTransport, harness: SandboxHarness
    ) -> None:
        harness.behave(groups=1234)
        assert len([contact async for contact in transport.recipients()]) == 1234

    async def test_an_account_without_groups_lists_none(
        self, transport: SandboxTransport, harness: SandboxHarness
    ) -> None:
        harness.behave(groups=0)
        assert [contact async for contact in transport.recipients()] == []

    async def test_pairing_shows_a_code_until_it_is_scanned(
        self, transport: SandboxTransport, harness: SandboxHarness, text: Message
    ) -> None:
        harness.behave(state="SCAN_QR_CODE")
        assert await transport.status() is AccountState.PAIRING
        assert isinstance(await transport.send(text, "k"), NotConnected)

        pairing = await transport.pairing()
        assert pairing.code
        assert 0 < pairing.expires_in <= 60

        harness.behave(state="WORKING")
        assert await transport.status() is AccountState.WORKING
        with pytest.raises(UnansweredError):
            await transport.pairing()

    async def test_a_session_is_started_and_logged_out_of(
        self, transport: SandboxTransport, harness: SandboxHarness
    ) -> None:
        assert await transport.connect(None) is AccountState.WORKING
        await transport.disconnect()
        assert await transport.status() is AccountState.STOPPED
        assert await transport.connect(None) is AccountState.PAIRING
        assert len(await transport.pairing_code("+4915112345678")) == 9

    async def test_an_account_may_be_made_to_practise_pairing(
        self, harness: SandboxHarness, session: aiohttp.ClientSession
    ) -> None:
        transport = SandboxTransport({**harness.credentials(), "pairing": "yes"}, session)
        assert await transport.connect(None) is AccountState.PAIRING

    async def test_a_number_is_looked_up(self, transport: SandboxTransport, harness: SandboxHarness) -> None:
        harness.behave(unknown=["+49 151"])
        assert not await transport.check_number("+49 151")
        assert await transport.check_number("+49 152")

    async def test_a_ban_comes_with_the_message_that_is_too_much(
        self, transport: SandboxTransport, harness: SandboxHarness, text: Message
    ) -> None:
        harness.behave(ban_above_per_minute=2)
        outcomes = [await transport.send(text, f"k{number}") for number in range(4)]
        assert [isinstance(outcome, Sent) for outcome in outcomes] == [True, True, False, False]
        assert await transport.status() is AccountState.BLOCKED

    @pytest.mark.parametrize(
        "address", ["ftp://a", "sandbox", "http://", "http://u:p@a", "http://a?b=c", "http://["]
    )
    def test_an_address_that_is_none_is_named(
        self, harness: SandboxHarness, session: aiohttp.ClientSession, address: str
    ) -> None:
        with pytest.raises(CredentialsError, match="Address"):
            SandboxTransport(harness.credentials_at(address), session)


class TestSandboxThatIgnoresKeys(TransportContract, HandleContract, GroupContract):
    """The credential says so; the key travels as a reference, which doubles nothing and saves nothing."""

    service = SandboxHarness

    @pytest.fixture
    def harness(self, sandbox: SandboxProcess) -> SandboxHarness:
        return SandboxHarness(sandbox, idempotent="no")

    def test_it_promises_no_idempotency(self, transport: SandboxTransport) -> None:
        assert not transport.capabilities.idempotent
        assert transport.default_capabilities.idempotent


class TestSandboxThatFetches(TransportContract, MediaAddressContract, InlineMediaContract, GroupContract):
    """Files come by their address or inside the message, as at WAHA and Evolution API."""

    service = SandboxHarness

    @pytest.fixture
    def harness(self, sandbox: SandboxProcess) -> SandboxHarness:
        return SandboxHarness(sandbox, idempotent="no", files="fetched")

    async def test_the_log_shows_the_bytes_that_were_fetched(
        self, transport: SandboxTransport, harness: SandboxHarness, shelf: Shelf
    ) -> None:
        message, _ = at_its_address(harness, shelf)
        await transport.send(message, "k")
        fetched, sent = (
            line for line in witness.read(harness.process.log) if line["account"] == harness.account
        )
        assert (fetched["kind"], fetched["bytes"], fetched["status"]) == ("fetch", 256 * 4096 + 3, 200)
        assert sent["bytes"] < 1000

    async def test_it_can_be_told_to_reach_no_address(
        self, transport: SandboxTransport, harness: SandboxHarness, shelf: Shelf
    ) -> None:
        harness.behave(cannot_fetch=True)
        message, hearing = at_its_address(harness, shelf)
        assert isinstance(await transport.send(message, "k"), Sent)
        assert hearing.heard == [("failed", "The address cannot be reached from here.")]
        assert shelf.fetched == []
        assert [each.media for each in harness.received()] == [LARGE.sha256]

    @pytest.mark.parametrize("gone", [False, True])
    async def test_it_may_fetch_after_it_answered(
        self, transport: SandboxTransport, harness: SandboxHarness, shelf: Shelf, gone: bool
    ) -> None:
        harness.behave(fetches_late=True, late_ms=1)
        shelf.gone = gone
        message, _ = at_its_address(harness, shelf)
        assert isinstance(await transport.send(message, "k"), Sent)
        while not any(  # noqa: ASYNC110 - the log is a file
            line["kind"] == "fetch"
            for line in witness.read(harness.process.log)
            if line["account"] == harness.account
        ):
            await asyncio.sleep(0.02)
        assert len(harness.received()) == (0 if gone else 1)
