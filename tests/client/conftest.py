"""A login, and a way to run commands as a person at a keyboard would."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from accounts.models import Account, User
from api import keys
from api.scopes import Scope
from client import api
from client.main import main
from reminders.models import Reminder
from tests.factories import AccountFactory, OperatorFactory, ReminderFactory


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


def key_of(person: User, scopes: Sequence[Scope] = tuple(Scope)) -> str:
    """Return the secret of a new key."""
    return keys.issue(person, name="Client", scopes=scopes).secret


@pytest.fixture
def person() -> User:
    return OperatorFactory.create(username="olga", zone="Europe/Berlin")


@pytest.fixture
def account(person: User) -> Account:
    return AccountFactory.create(owner=person, name="School phone")


@pytest.fixture
def ready(person: User, account: Account) -> Reminder:
    return ReminderFactory.create(
        owner=person,
        by_hand=True,
        status="scheduled",
        around_the_clock=True,
        accounts=[account],
        recipients=3,
    )


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the login of whoever runs them, and from waiting."""
    for name in [name for name in os.environ if name.startswith("PACELINE_")]:
        if name in {"PACELINE_URL", "PACELINE_KEY", "PACELINE_PLAIN_HTTP"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PACELINE_LOGIN_FILE", str(tmp_path / "config" / "login.json"))
    monkeypatch.setenv("PACELINE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(api, "PAUSES", (0.01,) * 5)


@pytest.fixture
def login(person: User, live_server: LiveServer, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> str:
    """Log in with all scopes, by the environment; return the address."""
    monkeypatch.setenv("PACELINE_URL", live_server.url)
    monkeypatch.setenv("PACELINE_KEY", key_of(person))
    return str(live_server.url)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run_it
