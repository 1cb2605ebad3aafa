"""The benchmark of the throughput says to whom it sent; figures of two receivers are not compared."""

from pathlib import Path

import pytest

from benchmarks import throughput
from benchmarks.receivers import sink


def test_the_receiver_is_nginx_where_it_is_installed_and_else_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throughput, "nginx_program", lambda: "/usr/sbin/nginx")
    assert throughput._options([]).receiver == "nginx"
    monkeypatch.setattr(throughput, "nginx_program", lambda: None)
    assert throughput._options([]).receiver == "sandbox"


def test_the_receiver_can_be_chosen_so_that_like_is_compared_with_like() -> None:
    chosen = throughput._options(["500", "--receiver", "sandbox"])
    assert (chosen.targets, chosen.receiver) == (500, "sandbox")


def test_without_nginx_it_is_not_replaced_in_silence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sink, "nginx_program", lambda: None)
    with pytest.raises(SystemExit, match="nginx is not installed"), sink.sink("nginx", tmp_path):
        pass


def test_a_receiver_tells_its_name(tmp_path: Path) -> None:
    with sink.sink("sandbox", tmp_path) as receiver:
        assert receiver.name == "sandbox"
        assert not receiver.received()
