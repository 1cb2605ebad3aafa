"""The decisions of `make run` before anything starts, and its cleaning up after a killed run."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from config import development, run
from config.embedded.process import StartError
from config.leftovers import MARK, end_leftovers
from manage import needs_servers
from tests.config.programs import PROJECT


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An environment that configures nothing, and a checkout without a `.env`."""
    unset = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEY", "DEBUG", "PORT", "SANDBOX_PORT")
    with mock.patch.dict(os.environ, {"PACELINE_VAR": str(tmp_path / "var")}):
        for name in unset:
            os.environ.pop(name, None)
        monkeypatch.setattr(development, "PROJECT", tmp_path)
        yield


def test_a_second_run_of_a_checkout_is_told_of_the_first(tmp_path: Path) -> None:
    with run._only_one(tmp_path) as note:
        note.write_text('{"address": "http://127.0.0.1:8123/"}')
        with pytest.raises(StartError, match=r"already running at http://127\.0\.0\.1:8123/"):
            run._only_one(tmp_path).__enter__()
    with run._only_one(tmp_path):
        assert not note.exists()


def test_a_taken_port_is_refused_in_one_sentence_without_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = str(server.getsockname()[1])
        ended = subprocess.run(
            [sys.executable, "-m", "config.run"],
            cwd=PROJECT,
            env=dict(os.environ) | {"PORT": taken},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr == (
        f"paceline: Port {taken} is in use: stop the program that uses it, or set PORT to another port, "
        "or leave PORT empty to get a free one.\n"
    )


def test_an_empty_address_of_the_sandbox_counts_as_none() -> None:
    with mock.patch.dict(os.environ, {"SANDBOX_URL": ""}):
        environment = run._environment(Path("/var"), {"PORT": 8001, "SANDBOX_PORT": 8082})
    assert environment["SANDBOX_URL"] == "http://127.0.0.1:8082"


def test_processes_of_a_killed_run_are_ended_and_no_others(tmp_path: Path) -> None:
    marked = dict(os.environ) | {MARK: str(tmp_path)}
    others = dict(os.environ) | {MARK: f"{tmp_path}-other"}
    command = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
    with (
        subprocess.Popen(command, env=marked, stdout=subprocess.PIPE) as left,
        subprocess.Popen(command, env=others, stdout=subprocess.PIPE) as stranger,
    ):
        for process in (left, stranger):
            assert process.stdout is not None
            process.stdout.readline()
        left.poll()
        assert end_leftovers(tmp_path) == 1
        assert left.wait() != 0
        assert stranger.poll() is None
        stranger.kill()


def test_keys_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    development.load(make_keys=True)
    first = os.environ["SECRET_KEY"], os.environ["ENCRYPTION_KEY"], os.environ["DEBUG"]
    for name in ("SECRET_KEY", "ENCRYPTION_KEY", "DEBUG"):
        del os.environ[name]
    development.load()
    assert (os.environ["SECRET_KEY"], os.environ["ENCRYPTION_KEY"], os.environ["DEBUG"]) == first
    assert (tmp_path / "var/dev.env").stat().st_mode & 0o077 == 0


def test_no_keys_are_made_by_another_program(tmp_path: Path) -> None:
    development.load()
    assert "SECRET_KEY" not in os.environ
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize("name", ["DATABASE_URL", "SECRET_KEY"])
def test_a_deployment_gets_no_values_of_development(name: str) -> None:
    development._make(Path(os.environ["PACELINE_VAR"]) / "dev.env")
    os.environ[name] = "of its own"
    development.load()
    assert "DEBUG" not in os.environ
    assert "ENCRYPTION_KEY" not in os.environ


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=1\nREDIS_URL=redis://file\n")
    os.environ["PORT"] = "2"
    development.load()
    assert os.environ["PORT"] == "2"
    assert os.environ["REDIS_URL"] == "redis://file"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["migrate"], True),
        (["resume_run", "5"], True),
        (["doctor"], True),
        ([], False),
        (["help"], False),
        (["--version"], False),
        (["migrate", "--help"], False),
        (["check", "--deploy"], False),
    ],
)
def test_servers_are_started_only_for_commands_that_use_them(arguments: list[str], expected: bool) -> None:
    assert needs_servers(arguments) is expected
