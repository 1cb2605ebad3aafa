"""The embedded servers, with real ones: started, shared, killed, started again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from redis import Redis as RedisClient

from config import embedded
from config.embedded import place, postgres, redis_server
from config.embedded.__main__ import main
from config.embedded.postgres import Postgres
from config.embedded.process import StartError, alive, nobody, server_account, until, works_in
from config.embedded.redis_server import Redis
from tests.config.programs import short_folder

pytestmark = pytest.mark.xdist_group("embedded")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")


@pytest.fixture(scope="module", autouse=True)
def no_urls() -> Iterator[None]:
    """Forget the servers that the tests themselves use."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("DATABASE_URL", raising=False)
        environment.delenv("REDIS_URL", raising=False)
        yield


@pytest.fixture(scope="module")
def shared_folder(no_urls: None) -> Iterator[Path]:
    with short_folder() as folder:
        with embedded.servers(folder):
            pass  # set up, whichever test comes first
        yield folder


@pytest.fixture
def var(shared_folder: Path) -> Iterator[Path]:
    """A folder whose servers were set up before, and do not run."""
    yield shared_folder
    for server in (Redis(shared_folder), Postgres(shared_folder)):
        server.stop()


@pytest.fixture
def fresh() -> Iterator[Path]:
    with short_folder() as folder:
        yield folder


@contextmanager
def another_user(var: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that uses the servers of `var` until its input ends, seen once they are up."""
    command = [sys.executable, "-m", "config.embedded", "run", "--var", str(var), "--", "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place.PROJECT) as user:
        assert user.stdin is not None
        assert user.stdout is not None
        user.stdin.write(b"up\n")
        user.stdin.flush()
        assert user.stdout.readline() == b"up\n"
        yield user


def pids(var: Path) -> list[int]:
    found = [Redis(var).pid(), Postgres(var).pid()]
    return [pid for pid in found if pid is not None]


def running(var: Path) -> list[bool]:
    return [Redis(var).ready(), Postgres(var).ready()]


def remember(urls: embedded.Urls, word: str) -> None:
    with psycopg.connect(urls.database) as database:
        database.execute("CREATE TABLE IF NOT EXISTS word (word text)")
        database.execute("INSERT INTO word VALUES (%s)", [word])
    with RedisClient.from_url(urls.redis) as redis:
        redis.set(word, word)


def recalls(urls: embedded.Urls, word: str) -> bool:
    with psycopg.connect(urls.database) as database:
        row = database.execute("SELECT count(*) FROM word WHERE word = %s", [word]).fetchone()
    with RedisClient.from_url(urls.redis) as redis:
        return row == (1,) and redis.get(word) == word.encode()


def kill(*processes: int) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)
    assert until(lambda: not any(alive(process) for process in processes), seconds=10)


def test_both_answer_inside_and_are_gone_afterwards(var: Path) -> None:
    with embedded.servers(var) as urls:
        remember(urls, "inside")
        assert os.environ["DATABASE_URL"] == urls.database
        assert os.environ["REDIS_URL"] == urls.redis
    assert running(var) == [False, False]
    assert pids(var) == []
    assert "DATABASE_URL" not in os.environ


def test_their_data_outlives_a_restart(var: Path) -> None:
    with embedded.servers(var) as urls:
        remember(urls, "restart")
    with embedded.servers(var) as urls:
        assert recalls(urls, "restart")


def test_their_addresses_are_known_without_starting_anything(fresh: Path) -> None:
    addresses = embedded.urls(fresh)
    assert list(fresh.iterdir()) == []
    with embedded.servers(fresh) as urls:
        assert urls == addresses


def test_a_second_user_shares_them_and_the_last_one_stops_them(var: Path) -> None:
    with another_user(var) as other:
        before = pids(var)
        with embedded.servers(var):
            assert pids(var) == before
        assert running(var) == [True, True]
        other.communicate()
    assert running(var) == [False, False]


def test_servers_of_a_killed_user_are_taken_over_and_stopped(var: Path) -> None:
    with another_user(var) as killed:
        orphans = pids(var)
        killed.kill()
    assert running(var) == [True, True]
    with embedded.servers(var):
        assert pids(var) == orphans
    assert pids(var) == []


def test_killed_servers_start_again_with_their_data(var: Path) -> None:
    with another_user(var) as killed:
        remember(embedded.urls(var), "killed")
        killed.kill()
        kill(*pids(var))
    with embedded.servers(var) as urls:
        assert recalls(urls, "killed")


def test_the_pid_of_a_killed_server_that_became_a_strangers_is_no_obstacle(var: Path) -> None:
    account = server_account(var)
    with another_user(var) as killed:
        killed.kill()
        kill(*pids(var))
    with subprocess.Popen(["sleep", "600"], user=account.uid if account else None) as stranger:
        noted = var / "postgres/postmaster.pid"
        noted.write_text("\n".join([str(stranger.pid), *noted.read_text().splitlines()[1:]]))
        (var / "postgres/.s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n")
        (var / "redis/redis.pid").write_text(f"{stranger.pid}\n")
        with embedded.servers(var):
            assert running(var) == [True, True]
        assert stranger.poll() is None
        stranger.kill()


def test_a_pid_file_cut_short_is_no_obstacle(var: Path) -> None:
    (var / "postgres/postmaster.pid").write_text("")
    (var / "redis/redis.pid").write_text("")
    with embedded.servers(var):
        assert running(var) == [True, True]


def test_a_server_that_lost_its_socket_is_replaced(var: Path) -> None:
    with another_user(var) as killed:
        unreachable = Redis(var).pid()
        killed.kill()
    assert unreachable
    Redis(var).socket.unlink()
    with embedded.servers(var):
        assert running(var) == [True, True]
        assert not works_in(unreachable, Redis(var).data)


def test_a_set_up_that_was_cut_off_is_begun_again(fresh: Path) -> None:
    (fresh / "postgres.new").mkdir()
    (fresh / "postgres.new/PG_VERSION").write_text("18")
    with embedded.servers(fresh):
        assert running(fresh) == [True, True]
    assert not (fresh / "postgres.new").exists()


@pytest.mark.parametrize(
    ("name", "expected"), [("DATABASE_URL", [True, False]), ("REDIS_URL", [False, True])]
)
def test_a_server_with_an_address_of_its_own_is_not_started(
    name: str, expected: list[bool], var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "elsewhere://server")
    with embedded.servers(var) as urls:
        assert running(var) == expected
        assert "elsewhere://server" in {urls.database, urls.redis}
    assert os.environ[name] == "elsewhere://server"


def test_with_both_addresses_set_nothing_is_touched(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/a")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    with embedded.servers(fresh) as urls:
        assert urls == embedded.Urls(database="postgresql://elsewhere/a", redis="redis://elsewhere")
    assert list(fresh.iterdir()) == []


def test_a_folder_too_deep_for_a_socket_takes_a_password_over_tcp(fresh: Path) -> None:
    deep = fresh / ("x" * 90)
    with embedded.servers(deep) as urls:
        remember(urls, "deep")
        assert recalls(urls, "deep")
        secret = place.loopback(deep).password
        assert secret in urls.database
        assert secret in urls.redis
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(urls.database.replace(secret, "guessed"))
    assert (deep / "servers.json").stat().st_mode & 0o077 == 0
    _take_its_ports_and_start_again(deep)


def _take_its_ports_and_start_again(deep: Path) -> None:
    before = place.loopback(deep)
    taken = [("127.0.0.1", before.postgres_port), ("127.0.0.1", before.redis_port)]
    with socket.create_server(taken[0]), socket.create_server(taken[1]), embedded.servers(deep) as urls:
        assert recalls(urls, "deep")
    after = place.loopback(deep)
    assert before.postgres_port != after.postgres_port
    assert before.redis_port != after.redis_port


@needs_root
def test_a_folder_closed_to_postgres_is_replaced_by_one_it_can_enter(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    private = fresh / "home"
    private.mkdir(mode=0o700)
    monkeypatch.setattr(place, "FALLBACK", fresh / "open")
    with embedded.servers(private / "var") as urls:
        remember(urls, "private")
        assert str(fresh / "open") in capfd.readouterr().err
        assert Postgres(place.home_of(private / "var")).data.stat().st_uid == nobody().uid
    assert not (private / "var").exists()


def test_it_returns_the_exit_code_of_the_command(var: Path) -> None:
    assert main(["run", "--var", str(var), "--", "sh", "-c", 'test -n "$DATABASE_URL" && exit 7']) == 7
    assert main(["run", "--var", str(var), "--", "sh", "-c", "kill -9 $$"]) == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_passes_the_wish_to_stop_on_and_waits(number: signal.Signals, var: Path) -> None:
    script = "trap 'exit 5' TERM INT; echo up; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "config.embedded", "run", "--var", str(var), "--", "sh", "-c", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=place.PROJECT, start_new_session=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        program.send_signal(number)
        assert program.wait() == 5
    assert running(var) == [False, False]


def test_status_tells_and_stop_ends_what_was_left(var: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with another_user(var) as killed:
        assert main(["stop", "--var", str(var)]) == 2
        assert "is using the servers" in capfd.readouterr().err
        killed.kill()
    assert main(["status", "--var", str(var)]) == 0
    assert main(["stop", "--var", str(var)]) == 0
    assert main(["status", "--var", str(var)]) == 1
    assert "PostgreSQL stopped." in capfd.readouterr().out


def test_erase_leaves_nothing(fresh: Path) -> None:
    assert main(["run", "--var", str(fresh / "var"), "--", "true"]) == 0
    assert main(["erase", "--var", str(fresh / "var")]) == 0
    assert list(fresh.iterdir()) == []


def test_data_of_another_version_is_refused_in_a_sentence(
    fresh: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (fresh / "postgres").mkdir()
    (fresh / "postgres/PG_VERSION").write_text("9\n")
    assert main(["run", "--var", str(fresh), "--", "true"]) == 2
    error = capfd.readouterr().err
    assert "was made by PostgreSQL 9 and the installed one is" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "missing"), [(postgres, "PostgreSQL's programs"), (redis_server, "redis-server")]
)
def test_missing_programs_are_named(
    module: object,
    missing: str,
    fresh: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    if module is postgres:
        monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    assert main(["run", "--var", str(fresh), "--", "true"]) == 2
    assert f"{missing}" in capfd.readouterr().err


def test_a_full_disk_is_named(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(command: list[str | Path], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "18\ncould not extend file\nHINT:  Check free disk space."
        )

    monkeypatch.setattr(postgres, "run", full)
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    with pytest.raises(StartError, match="disk is full"), embedded.servers(fresh):
        pytest.fail("started on a full disk")
    assert not (fresh / "postgres").exists()


def test_a_folder_that_cannot_be_made_is_named(fresh: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (fresh / "file").write_text("")
    assert main(["run", "--var", str(fresh / "file/var"), "--", "true"]) == 2
    assert "PACELINE_VAR" in capfd.readouterr().err


def test_an_unknown_command_is_named(var: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--var", str(var), "--", "no-such-program"]) == 127
    assert "no-such-program" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("url", "host", "port", "options"),
    [
        (
            "postgresql://me@/db?host=%2FA%20b%2FCase",
            "/A b/Case",
            "",
            {},
        ),  # a socket; letters keep their case
        ("postgresql://me@server:6432/db?sslmode=require", "server", "6432", {"sslmode": "require"}),
        ("postgresql://me@one,two/db", "one,two", "", {}),
        ("postgresql://me@one:1,[::2]:2/db?a=b", "one,::2", "1,2", {"a": "b"}),
    ],
)
def test_an_address_becomes_djangos_settings(url: str, host: str, port: str, options: dict[str, str]) -> None:
    assert embedded.database_settings(url) == {
        "NAME": "db",
        "USER": "me",
        "PASSWORD": "",
        "HOST": host,
        "PORT": port,
        "OPTIONS": options,
    }
