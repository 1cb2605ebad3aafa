"""The ports that `make run` chooses."""

import socket
from collections.abc import Iterator

import pytest

from config.embedded.process import StartError
from config.ports import reserved


@pytest.fixture(autouse=True)
def nothing_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PORT", "SANDBOX_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_without_a_wish_it_is_the_next_free_port(taken: int) -> None:
    with reserved({"PORT": taken}) as ports:
        assert ports["PORT"] > taken


def test_a_server_can_listen_on_a_reserved_port(taken: int) -> None:
    with reserved({"PORT": taken}) as ports, socket.create_server(("127.0.0.1", ports["PORT"])):
        pass


def test_another_run_gets_other_ports_before_anything_listens(taken: int) -> None:
    usual = {"PORT": taken, "SANDBOX_PORT": taken}
    with reserved(usual) as ports, reserved(usual) as others:
        assert len({*ports.values(), *others.values()}) == 4


def test_a_port_is_free_again_after_the_run(taken: int) -> None:
    with reserved({"PORT": taken}) as first:
        pass
    with reserved({"PORT": first["PORT"]}) as second:
        assert second == first


def test_a_taken_port_that_was_asked_for_is_refused(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_PORT", str(taken))
    with (
        pytest.raises(StartError, match=f"Port {taken} is in use.*SANDBOX_PORT"),
        reserved({"SANDBOX_PORT": 1}),
    ):
        pass


def test_a_port_that_was_asked_for_is_given_to_nothing_else(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserved({"PORT": taken}) as ports:
        free = ports["PORT"]
    monkeypatch.setenv("SANDBOX_PORT", str(free))
    with reserved({"PORT": free, "SANDBOX_PORT": 1}) as ports:
        assert ports["SANDBOX_PORT"] == free
        assert ports["PORT"] > free


@pytest.mark.parametrize("given", ["web", "0", "65536", "-1", "80.5"])
def test_what_is_no_port_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", given)
    with pytest.raises(StartError, match="from 1 to 65535"), reserved({"PORT": 8000}):
        pass
