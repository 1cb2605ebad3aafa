"""manage.py migrate beside a release that is sending: it waits for no lock for long, and tries again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.commands import migrate as django_migrate
from django.db import OperationalError, connection, transaction
from django.db.migrations import Migration

from activity.management.commands import migrate

pytestmark = pytest.mark.django_db(transaction=True)
LOCK = "LOCK TABLE accounts_tag IN ACCESS EXCLUSIVE MODE"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(migrate, "PAUSES", (0.01,) * 50)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return _instead(monkeypatch, atomic=True)


def _instead(monkeypatch: pytest.MonkeyPatch, *, atomic: bool) -> list[str]:
    """Let the command run one migration that locks a table, and note each try with its lock_timeout."""
    tries: list[str] = []
    migration = type("Locks", (Migration,), {"atomic": atomic})("locks", "accounts")

    def handle(self: Any, **_: Any) -> None:
        self.verbosity = 0
        self.migration_progress_callback("apply_start", migration)
        with transaction.atomic(), connection.cursor() as cursor:
            tries.append(_lock_timeout())
            cursor.execute(LOCK)

    monkeypatch.setattr(django_migrate.Command, "handle", handle)
    return tries


def _lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])


@contextmanager
def held(seconds: float) -> Iterator[None]:
    """Hold the table in another session, as a statement of a worker does."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(settings.DATABASE_URL, dbname=name) as other:
        other.execute(LOCK)
        release = Timer(seconds, other.rollback)
        release.start()
        try:
            yield
        finally:
            release.join()


def test_a_table_that_is_held_for_a_while_is_waited_for_in_short_tries(tries: list[str]) -> None:
    with held(0.3):
        call_command("migrate", verbosity=0)
    assert len(tries) > 1
    assert set(tries) == {"50ms"}
    assert _lock_timeout() == "0"


def test_it_gives_up_with_the_error_of_the_database(
    tries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "PAUSES", (0.01,))
    with held(0.6), pytest.raises(OperationalError, match="lock timeout"):
        call_command("migrate", verbosity=0)
    assert len(tries) == 2
    assert _lock_timeout() == "0"


def test_one_without_a_transaction_waits_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = _instead(monkeypatch, atomic=False)
    with held(0.2):
        call_command("migrate", verbosity=0)
    assert tries == ["0"]


@pytest.mark.parametrize("error", [OperationalError("the server is away"), ValueError("no migration")])
def test_another_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    ran: list[Callable[..., None]] = []

    def handle(self: Any, **_: Any) -> None:
        ran.append(self.handle)
        raise error

    monkeypatch.setattr(django_migrate.Command, "handle", handle)
    with pytest.raises(type(error)):
        call_command("migrate", verbosity=0)
    assert len(ran) == 1
