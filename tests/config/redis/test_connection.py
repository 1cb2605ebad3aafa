"""Redis that is silent, refuses, or shows a certificate: what the three who connect make of it."""

import socket
import time
from collections.abc import Iterator

import pytest
from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnectionError
from redis.exceptions import OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as NoAnswerError
from redis.retry import Retry

from config.deadline import within
from config.redis.broker import Connection
from config.redis.connection import TcpConnection, refuses, silence

LONG = 20.0  # seconds; what has a deadline of two ends long before, on any machine


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    silence.forget()
    yield
    silence.forget()


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def _client(port: int, host: str = "127.0.0.1") -> Redis:
    pool = ConnectionPool(
        connection_class=TcpConnection, host=host, port=port, socket_timeout=0.5, retry=Retry(NoBackoff(), 1)
    )
    return Redis(connection_pool=pool)


def test_a_silent_server_is_asked_once_and_then_left_alone_for_a_moment(silent: int) -> None:
    client = _client(silent)
    with pytest.raises((NoAnswerError, NoConnectionError)):
        client.ping()
    assert silence.lasts(f"127.0.0.1:{silent}")
    for _ in range(100):
        with pytest.raises(NoConnectionError, match="did not answer a moment ago"):
            client.ping()
    silence.forget()
    with pytest.raises((NoAnswerError, NoConnectionError)):
        client.ping()


def test_a_name_that_does_not_resolve_in_time_costs_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: time.sleep(LONG * 3))
    began = time.monotonic()
    with pytest.raises((NoAnswerError, NoConnectionError)):
        _client(6379, host="redis.example").ping()
    assert time.monotonic() - began < LONG


@pytest.fixture
def dropping() -> Iterator[int]:
    """A port whose queue is full, so that the kernel drops every further SYN, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = int(server.getsockname()[1])
        waiting = [socket.socket() for _ in range(8)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield port
        for each in waiting:
            each.close()


def test_a_server_that_drops_every_packet_costs_seconds(dropping: int) -> None:
    began = time.monotonic()
    with pytest.raises((NoAnswerError, NoConnectionError)):
        _client(dropping).ping()
    assert time.monotonic() - began < LONG
    assert silence.lasts(f"127.0.0.1:{dropping}")


def test_a_server_that_refuses_connections_is_asked_every_time() -> None:
    """It may be back at any moment, and a refusal comes at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NoConnectionError):
        _client(port).ping()
    assert not silence.lasts(f"127.0.0.1:{port}")


def _broker(url: str, options: dict[str, float]) -> Connection:
    return Connection(url, transport_options=options)  # type: ignore[no-untyped-call]


def test_publishing_to_a_silent_broker_ends_within_seconds(silent: int) -> None:
    options = {"socket_timeout": 0.5, "max_retries": 1, "interval_start": 0, "interval_step": 0.1}
    began = time.monotonic()
    with (
        _broker(f"redis://127.0.0.1:{silent}/0", options) as connection,
        pytest.raises(Exception, match=r"did not answer|Timeout"),
    ):
        connection.default_channel  # noqa: B018 - connects
    assert time.monotonic() - began < LONG


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'.", status_code="OOM"), True),
        (ReadOnlyError("You can't write against a read only replica.", status_code="READONLY"), True),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots, but it's unable to"), True),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), True),
        (ResponseError("ERR Error running script: @user_script: 3: -OOM command not allowed"), True),
        (ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), False),
        (ResponseError("ERR unknown command 'OOM'"), False),
    ],
)
def test_a_server_that_will_not_work_is_told_from_a_wrong_command(
    error: ResponseError, expected: bool
) -> None:
    assert refuses(error) is expected


def test_what_comes_too_late_is_cleared_away() -> None:
    late: list[str] = []

    def slowly() -> str:
        time.sleep(0.3)
        return "socket"

    with pytest.raises(TimeoutError):
        within(0.05, slowly, too_late=late.append)
    deadline = time.monotonic() + LONG
    while not late and time.monotonic() < deadline:
        time.sleep(0.02)
    assert late == ["socket"]


def test_an_error_reaches_whoever_waits() -> None:
    def fail() -> socket.socket:
        raise ConnectionRefusedError("no")

    with pytest.raises(ConnectionRefusedError):
        within(5, fail, too_late=socket.socket.close)
