"""The key is kept so that only its owner can read it, and is sent to no address but its own."""

import stat
from pathlib import Path

import pytest

from client import login
from client.errors import ClientError
from client.login import Login


def test_a_login_is_kept_for_its_owner_alone() -> None:
    file = login.save(Login(url="https://paceline.example", key="paceline_x"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert login.find() == Login(url="https://paceline.example", key="paceline_x")
    login.save(Login(url="https://other.example", key="y"))
    assert login.find().url == "https://other.example"
    assert [each.name for each in file.parent.iterdir()] == ["login.json"]


def test_a_file_that_others_can_read_is_refused() -> None:
    login.save(Login(url="https://paceline.example", key="paceline_x")).chmod(0o640)
    with pytest.raises(ClientError, match="chmod 600"):
        login.find()


def test_the_environment_goes_before_the_file_and_only_as_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    login.save(Login(url="https://paceline.example", key="of-the-file"))
    monkeypatch.setenv("PACELINE_URL", "https://other.example/api/v1/")
    with pytest.raises(ClientError, match="PACELINE_KEY is not"):
        login.find()
    monkeypatch.setenv("PACELINE_KEY", "other")
    assert login.find() == Login(url="https://other.example", key="other")


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("paceline.example", "https://paceline.example"),
        ("https://paceline.example/under/api/v1", "https://paceline.example/under"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_an_address_is_kept_in_one_form(typed: str, kept: str) -> None:
    assert login.address_of(typed) == kept


@pytest.mark.parametrize(
    "typed",
    ["http://paceline.example", "https://a:b@paceline.example", "ftp://paceline.example", "https://", ""],
)
def test_an_address_that_would_show_the_key_to_others_is_refused(typed: str) -> None:
    with pytest.raises(ClientError):
        login.address_of(typed)


def test_a_key_does_not_show_in_a_log() -> None:
    assert "secret" not in repr(Login(url="https://paceline.example", key="secret"))


@pytest.mark.parametrize("said", ["", "{", "[]", '{"url": "https://paceline.example"}'])
def test_a_broken_file_asks_to_log_in(said: str) -> None:
    login.place().parent.mkdir(parents=True)
    login.place().write_text(said)
    login.place().chmod(0o600)
    with pytest.raises(ClientError, match="paceline login"):
        login.find()


def test_without_a_login_it_says_how_to_log_in() -> None:
    with pytest.raises(ClientError, match="paceline login"):
        login.find()
    assert login.forget() is False


def test_the_place_follows_the_desktop_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACELINE_LOGIN_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert login.place() == tmp_path / "paceline" / "login.json"
