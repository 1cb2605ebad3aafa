"""Accounts connect to private addresses only where the installation lets them."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from pytest_django import Settings
from structlog.testing import capture_logs

from delivery import apps
from delivery.engine.loop import SendLoop
from delivery.outcomes import AccountBlocked, Sent
from delivery.sessions import ask
from delivery.transports.base import Message
from delivery.transports.email.send import EmailTransport
from delivery.transports.http.exchange import Answer, Request, exchange, gateway_url, open_session
from delivery.transports.networks.allowed import (
    ANYWHERE,
    AddressNotAllowedError,
    AllowedNetworks,
    allowed_networks,
    hint,
)
from delivery.transports.networks.names import connect
from tests.delivery.transports.mail_server import MailServer
from tests.factories import AccountFactory

NOWHERE = allowed_networks(["none"])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.5",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",  # where clouds tell their secrets
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.2.3",
        "::127.0.0.1",  # IPv4-compatible
        "::",
        "0.1.2.3",
        "198.18.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.0.0.192",  # the secrets of machines at Oracle
        "168.63.129.16",  # and at Azure
        "::ffff:168.63.129.16",
        "240.0.0.1",
        "255.255.255.255",
        "fe80::1%eth0",
        "fd00::1",
        "fc00::1",
        "fec0::1",  # site-local
        "ff02::1",
        "ff0e::1",
        "64:ff9b::7f00:1",  # NAT64 to 127.0.0.1
        "64:ff9b::10.0.0.5",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "64:ff9b:1:a00:0:100::",
        "2002:7f00:1::1",  # 6to4 to 127.0.0.1
        "2002:a00:5::",
        "2002:c0a8:101:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
        "2001:db8::1",
        "3fff::1",
        "100::1",
        "5f00::1",
        "4000::1",
    ],
)
def test_a_private_address_is_out_of_reach_unless_its_network_is_named(address: str) -> None:
    with pytest.raises(AddressNotAllowedError):
        NOWHERE.require(address)
    with pytest.raises(AddressNotAllowedError):
        allowed_networks(["10.9.0.0/16", "fd99::/16"]).require(address)
    ANYWHERE.require(address)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "::ffff:93.184.215.14",
        "64:ff9b::93.184.215.14",  # how a network without IPv4 reaches the internet
        "2002:5db8:d70e::1",
    ],
)
def test_the_internet_is_always_in_reach(address: str) -> None:
    NOWHERE.require(address)


def test_what_is_named_is_in_reach() -> None:
    some = allowed_networks(["10.1.2.0/24", "::1/128"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "::1"):
        some.require(address)
    with pytest.raises(AddressNotAllowedError):
        some.require("10.1.3.3")


@pytest.mark.parametrize("words", [["10.1.2.3/8"], ["gateway.local"], ["all", "none"], [""]])
def test_a_setting_that_nobody_can_read_stops_the_start(settings: Settings, words: list[str]) -> None:
    settings.PRIVATE_NETWORKS = words
    with pytest.raises(ImproperlyConfigured, match="PRIVATE_NETWORKS"):
        apps._check_settings()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A server on this machine that must not be reached."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_a_gateway_on_a_private_address_is_not_even_connected_to(
    listening: socket.socket, host: str
) -> None:
    url = gateway_url(f"http://{host}:{listening.getsockname()[1]}", label="Address")
    async with open_session(networks=NOWHERE) as session:
        outcome = await exchange(session, Request(method="GET", url=url), connect=1, total=2)
    assert not isinstance(outcome, Answer)
    assert outcome == AccountBlocked(reason=AddressNotAllowedError.reason)
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("security", ["none", "tls"])
async def test_a_mail_server_on_a_private_address_is_not_even_connected_to(
    listening: socket.socket, security: str
) -> None:
    credentials = {"host": "localhost", "port": str(listening.getsockname()[1]), "security": security}
    credentials["from_address"] = "a@school.example"
    transport = EmailTransport(credentials, None, networks=NOWHERE)
    outcome = await transport.send(Message(address="b@school.example", kind="text", text="Hi"), "k")
    assert outcome == AccountBlocked(reason=AddressNotAllowedError.reason)
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("networks", [AllowedNetworks(()), allowed_networks(["127.0.0.0/8", "::1/128"])])
async def test_a_mail_server_that_is_named_is_spoken_to(networks: AllowedNetworks) -> None:
    async with MailServer() as server:
        transport = EmailTransport(server.credentials(), None, networks=networks)
        outcome = await transport.send(Message(address=server.address, kind="text", text="Hi"), "k")
        await transport.close()
    assert isinstance(outcome, Sent) == bool(networks.private)


def test_the_setting_holds_for_questions_and_for_messages(
    db: None, settings: Settings, listening: socket.socket
) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    account = AccountFactory.create(credentials={"base_url": base_url, "account": "a", "token": "t"})
    with pytest.raises(ask.NoAnswerError, match="private address"):
        ask.ask(account, lambda transport: transport.connect(None))

    engine = SendLoop()
    transport = engine.transport("sandbox", account.credentials)
    outcome = engine.run(transport.send(Message(address="g", kind="text", text="Hi"), "k"))
    engine.close()
    assert outcome == AccountBlocked(reason=AddressNotAllowedError.reason)


def test_who_is_refused_reads_the_name_of_the_setting() -> None:
    assert "PRIVATE_NETWORKS" in AddressNotAllowedError.reason
    assert str(AddressNotAllowedError()) == AddressNotAllowedError.reason


def test_a_start_that_chose_no_networks_says_what_that_means() -> None:
    assert "PRIVATE_NETWORKS=127.0.0.0/8,::1/128" in hint(["none"], chosen=False)
    assert hint(["none"], chosen=True) == hint(["all"], chosen=False) == ""
    assert allowed_networks(["127.0.0.0/8", "::1/128"]).private is not None


def test_the_log_of_a_server_has_the_hint(settings: Settings) -> None:
    settings.PRIVATE_NETWORKS, settings.PRIVATE_NETWORKS_CHOSEN = ["none"], False
    with capture_logs() as lines:
        apps.tell_of_networks()
    assert [line["event"] for line in lines] == ["private_networks_closed"]


def test_doctor_has_the_hint(db: None, settings: Settings) -> None:
    settings.PRIVATE_NETWORKS, settings.PRIVATE_NETWORKS_CHOSEN = ["none"], False
    lines = StringIO()
    with suppress(CommandError):
        call_command("doctor", stdout=lines)
    assert "PRIVATE_NETWORKS=127.0.0.0/8,::1/128" in lines.getvalue()


def test_a_name_that_leads_elsewhere_the_second_time_is_not_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rebinding: the address that was judged is the one that is connected to."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: str, *more: object, **named: object) -> object:
        asked.append(host)
        if host != "rebinding.example":
            return real(host, *more, **named)  # type: ignore[arg-type]
        return real("192.0.2.1" if len(asked) == 1 else "127.0.0.1", *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with pytest.raises(AddressNotAllowedError):
        connect(NOWHERE, "rebinding.example", 25, 1)
    assert asked == ["rebinding.example"]
