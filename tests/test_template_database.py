"""The database that test processes copy is made once, and anew when a migration changes."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg.sql import SQL, Identifier

from tests.template_database import template_database

MIGRATE = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as database:
    database.execute("CREATE TABLE made (n int)")
"""
PREFIX = f"made_in_a_test_{os.getpid()}_"  # each process of the tests has databases of its own


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "manage.py").write_text(MIGRATE)
    (tmp_path / "requirements-dev.txt").write_text("django==5.2")
    (tmp_path / "app/migrations").mkdir(parents=True)
    (tmp_path / "app/migrations/0001_initial.py").write_text("first")
    return tmp_path


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as server:
        yield server
        for name in names(server):
            server.execute(SQL("DROP DATABASE {}").format(Identifier(name)))


def names(server: psycopg.Connection) -> set[str]:
    rows = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
    return {row[0] for row in rows}


def ask(root: Path) -> str:
    return template_database(settings.DATABASE_URL, root=root, locks=root, prefix=PREFIX)


def test_it_is_made_once(root: Path, server: psycopg.Connection) -> None:
    name = ask(root)

    (root / "manage.py").write_text("raise SystemExit(1)")

    assert ask(root) == name
    assert names(server) == {name}


def test_a_changed_migration_makes_it_anew(root: Path, server: psycopg.Connection) -> None:
    before = ask(root)

    (root / "app/migrations/0001_initial.py").write_text("second")
    after = ask(root)

    assert after != before
    assert names(server) == {after}


def test_a_migration_that_fails_leaves_nothing_to_copy(root: Path, server: psycopg.Connection) -> None:
    (root / "manage.py").write_text("raise SystemExit('The column exists.')")

    with pytest.raises(RuntimeError, match="The column exists"):
        ask(root)

    (root / "manage.py").write_text(MIGRATE)
    made = ask(root)
    assert names(server) == {made}
