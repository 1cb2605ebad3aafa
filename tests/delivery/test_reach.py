"""Accounts connect to private addresses only where the installation lets them."""

import socket
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from delivery import apps, asking
from delivery.outcomes import AccountBlocked, Sent
from delivery.reach import ANYWHERE, OutOfReachError, Reach, reach_of
from delivery.transports.base import Message
from delivery.transports.email import EmailTransport
from delivery.transports.http.exchange import Answer, Request, exchange, gateway_url, open_session
from delivery.wire import Wire
from tests.delivery.transports.mail_server import MailServer
from tests.factories import AccountFactory

NOWHERE = reach_of(["none"])


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
        "fe80::1%eth0",
        "fd00::1",
    ],
)
def test_a_private_address_is_out_of_reach_unless_its_network_is_named(address: str) -> None:
    with pytest.raises(OutOfReachError):
        NOWHERE.require(address)
    with pytest.raises(OutOfReachError):
        reach_of(["10.9.0.0/16", "fd99::/16"]).require(address)
    ANYWHERE.require(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_the_internet_is_always_in_reach(address: str) -> None:
    NOWHERE.require(address)


def test_what_is_named_is_in_reach() -> None:
    some = reach_of(["10.1.2.0/24", "::1/128"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "::1"):
        some.require(address)
    with pytest.raises(OutOfReachError):
        some.require("10.1.3.3")


@pytest.mark.parametrize("words", [["10.1.2.3/8"], ["gateway.local"], ["all", "none"], [""]])
def test_a_setting_that_nobody_can_read_stops_the_start(settings: Settings, words: list[str]) -> None:
    settings.PRIVATE_NETWORKS = words
    with pytest.raises(ImproperlyConfigured, match="PRIVATE_NETWORKS"):
        apps._check_settings()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """Somebody on this machine who is not to be reached."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1"])
async def test_a_gateway_on_a_private_address_is_not_even_connected_to(
    listening: socket.socket, host: str
) -> None:
    url = gateway_url(f"http://{host}:{listening.getsockname()[1]}", label="Address")
    async with open_session(reach=NOWHERE) as session:
        outcome = await exchange(session, Request(method="GET", url=url), connect=1, total=2)
    assert not isinstance(outcome, Answer)
    if host in {"127.0.0.1", "localhost"}:
        assert outcome == AccountBlocked(reason=OutOfReachError.reason)
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("security", ["none", "tls"])
async def test_a_mail_server_on_a_private_address_is_not_even_connected_to(
    listening: socket.socket, security: str
) -> None:
    credentials = {"host": "localhost", "port": str(listening.getsockname()[1]), "security": security}
    credentials["from_address"] = "a@school.example"
    transport = EmailTransport(credentials, None, reach=NOWHERE)
    outcome = await transport.send(Message(address="b@school.example", kind="text", text="Hi"), "k")
    assert outcome == AccountBlocked(reason=OutOfReachError.reason)
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("reach", [Reach(()), reach_of(["127.0.0.0/8", "::1/128"])])
async def test_a_mail_server_that_is_named_is_spoken_to(reach: Reach) -> None:
    async with MailServer() as server:
        transport = EmailTransport(server.credentials(), None, reach=reach)
        outcome = await transport.send(Message(address=server.address, kind="text", text="Hi"), "k")
        await transport.close()
    assert isinstance(outcome, Sent) == bool(reach.private)


def test_the_setting_holds_for_questions_and_for_messages(
    db: None, settings: Settings, listening: socket.socket
) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    account = AccountFactory.create(credentials={"base_url": base_url, "account": "a", "token": "t"})
    with pytest.raises(asking.NoAnswerError, match="private address"):
        asking.ask(account, lambda transport: transport.connect(None))

    engine = Wire()
    transport = engine.transport("sandbox", account.credentials)
    outcome = engine.run(transport.send(Message(address="g", kind="text", text="Hi"), "k"))
    engine.close()
    assert outcome == AccountBlocked(reason=OutOfReachError.reason)
